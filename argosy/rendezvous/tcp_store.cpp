#include "argosy/rendezvous/tcp_store.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/os/addresses.h"
#include "argosy/os/socket.h"

namespace argosy::rendezvous {
namespace {

constexpr std::chrono::seconds kPatience{10};  // for an answer that needs no waiting
constexpr uint64_t kLongestValue = uint64_t{1} << 20;

enum class Query : uint8_t { kValidate = 0, kSet = 1, kGet = 3, kWait = 6, kPing = 13 };
constexpr uint32_t kMagic = 0x3C85F7CE;  // what kValidate must carry
constexpr uint8_t kStopWaiting = 0;      // what kWait answers

static_assert(std::endian::native == std::endian::little, "the protocol has the host's byte order");

template <typename T>
void put_number(std::string& message, T number) {
  message.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void put_query(std::string& message, Query query) {
  message.push_back(static_cast<char>(query));
}

void put_text(std::string& message, std::string_view text) {
  put_number(message, static_cast<uint64_t>(text.size()));
  message += text;
}

/// As PyTorch's own clients name it.
std::string full_name(std::string_view key) {
  return "/" + std::string(key);
}

}  // namespace

TcpStore::TcpStore(const std::string& host, uint16_t port, const Deadline& deadline)
    : place_(os::host_port(host, port)),
      fd_(os::connect_tcp(host, port, deadline).or_throw<RendezvousError>("rendezvous.tcp_store")) {
  os::set_nonblocking(fd_.get()).or_throw<RendezvousError>("rendezvous.tcp_store");
  std::string hello;
  put_query(hello, Query::kValidate);
  put_number(hello, kMagic);
  ping(std::move(hello), deadline);
  answered_ = true;
}

void TcpStore::set(std::string_view key, std::string_view value, const Deadline& deadline) {
  std::string message;
  put_query(message, Query::kSet);
  put_text(message, full_name(key));
  put_text(message, value);
  ping(std::move(message), deadline);
}

/// Sends `message` and waits until it has been read.
void TcpStore::ping(std::string message, const Deadline& deadline) {
  const auto nonce = static_cast<uint32_t>(::getpid());
  put_query(message, Query::kPing);
  put_number(message, nonce);
  const Deadline soon = deadline.sooner(Deadline::after(kPatience));
  send(message, soon);
  if (receive_number<uint32_t>(soon) != nonce) {
    fail("another number came back than was sent");
  }
}

std::string TcpStore::get(std::string_view key, const Deadline& deadline) {
  std::string message;
  put_query(message, Query::kWait);
  put_number(message, uint64_t{1});
  put_text(message, full_name(key));
  send(message, deadline);
  const bool ready =
      os::wait_ready(fd_.get(), POLLIN, deadline).or_throw<RendezvousError>("rendezvous.tcp_store");
  if (!ready) {
    throw TimeoutError("rendezvous.tcp_store",
                       fmt::format("nobody has set \"{}\" in torchrun's store at {}", key, place_),
                       {.op = "store.get"});
  }
  const Deadline soon = Deadline::after(kPatience);
  if (receive_number<uint8_t>(soon) != kStopWaiting) {
    fail("waiting was cancelled");
  }
  message.clear();
  put_query(message, Query::kGet);
  put_text(message, full_name(key));
  send(message, soon);
  const auto length = receive_number<uint64_t>(soon);
  if (length > kLongestValue) {
    fail(fmt::format("a value of {} bytes", length));
  }
  return receive(length, soon);
}

void TcpStore::send(std::string_view message, const Deadline& deadline) {
  while (!message.empty()) {
    const ssize_t sent = ::send(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      message.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) {
      fail(errno_message(errno));
    }
    if (!os::wait_ready(fd_.get(), POLLOUT, deadline)
             .or_throw<RendezvousError>("rendezvous.tcp_store")) {
      fail("it takes nothing");
    }
  }
}

std::string TcpStore::receive(size_t bytes, const Deadline& deadline) {
  std::string text(bytes, '\0');
  Result<size_t> got =
      os::read_all(fd_.get(), std::as_writable_bytes(std::span(text.data(), bytes)), deadline);
  if (!got.ok()) {
    fail(got.failure().error_number == ETIMEDOUT ? "no answer" : got.failure().what);
  }
  if (*got < bytes) {
    fail("it closed the connection");
  }
  return text;
}

template <typename T>
T TcpStore::receive_number(const Deadline& deadline) {
  const std::string bytes = receive(sizeof(T), deadline);
  T number{};
  std::memcpy(&number, bytes.data(), sizeof(T));
  return number;
}

void TcpStore::fail(const std::string& what) const {
  if (answered_) {
    throw RendezvousError("rendezvous.tcp_store",
                          fmt::format("torchrun's store at {}: {}. See whether torchrun still runs "
                                      "there.",
                                      place_,
                                      what));
  }
  throw RendezvousError("rendezvous.tcp_store",
                        fmt::format("what listens at {} does not answer as PyTorch's TCPStore "
                                    "does, which torchrun (2.4 or newer) keeps there: {}. "
                                    "`argosy launch` takes torchrun's options and needs none.",
                                    place_,
                                    what));
}

}  // namespace argosy::rendezvous
