#include "argosy/transport/shm/shm.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/pidfd.h"
#include "argosy/os/random.h"
#include "argosy/os/unix_socket.h"
#include "argosy/transport/gloo/host.h"
#include "argosy/transport/shm/shm_transport.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPlaceKey = "shm/place";          ///< rank 0's socket, secret, neighbourhood
constexpr const char* kElsewhereKey = "shm/elsewhere";  ///< of a rank that is not its neighbour
constexpr int kHost = 0;                                ///< the rank that makes the memory
constexpr auto kSlice = 200ms;
constexpr size_t kFiles = 3;  ///< that the host hands out, before the pidfds
/// Words of the host's message; another one is a refusal.
constexpr const char* kWelcome = "welcome";

os::UniqueFd make_mail() {
  os::UniqueFd fd(::memfd_create("argosy-mail", MFD_CLOEXEC));
  if (!fd) {
    throw Error("transport.shm", "memfd_create: " + errno_message(errno));
  }
  return fd;
}

/// The kernel limits a user's descriptors that are on their way to `ulimit -n`: then it is tried
/// again, when others have taken theirs.
void welcome(int caller, const std::vector<int>& fds, const Deadline& deadline) {
  for (;;) {
    const Status sent = os::send_message(caller, kWelcome, fds);
    if (sent.ok() || sent.failure().error_number == EPIPE) {
      return;  // whoever died since is found by who waits for it
    }
    if (sent.failure().error_number != ETOOMANYREFS || deadline.expired()) {
      throw Error("transport.shm", sent.failure().what + ". See ulimit -n");
    }
    std::this_thread::sleep_for(1ms);
  }
}

template <typename T>
std::vector<int> numbers(const std::vector<T>& fds) {
  std::vector<int> all;
  std::ranges::transform(fds, std::back_inserter(all), [](const T& fd) { return fd.get(); });
  return all;
}

}  // namespace

/// A process that others cannot watch is alone: shared memory would keep them waiting for it when
/// it has died. (Kernels before 5.3, some sandboxes.)
std::string neighbourhood_id() {
  std::error_code ignored;
  const std::string users = std::filesystem::read_symlink("/proc/self/ns/user", ignored).string();
  const std::string alone = os::own_pidfd().ok() ? "" : " " + os::random_hex(8);
  return fmt::format("{} {} {}{}", loopback_id(), users, ::geteuid(), alone);
}

Neighbours::Neighbours(os::SharedMemory memory,
                       os::UniqueFd mail,
                       os::UniqueFd blocks_file,
                       std::vector<os::UniqueFd> processes,
                       int rank,
                       int size,
                       const ShmOptions& options,
                       const RankNames& names)
    : segment(std::move(memory), size),
      mailbox(segment, rank, size, std::move(mail)),
      blocks(std::move(blocks_file), size),
      waiter(segment, rank, size, options, std::move(processes), names, [this] { pump(); }) {}

void Neighbours::pump() {
  for (const int peer : mailbox.pump()) {
    waiter.ring(peer);
  }
}

void Neighbours::wait_for_message(Mailbox::Expected& expected, const Deadline& deadline) {
  waiter.wait_until(
      expected.from,
      [&] {
        if (mailbox.has_come(expected)) {
          return true;
        }
        pump();
        return mailbox.has_come(expected);
      },
      deadline);
}

void Neighbours::wait_until_sent(int peer, uint64_t place, const Deadline& deadline) {
  waiter.wait_until(
      peer,
      [&] {
        if (mailbox.posted(peer) >= place) {
          return true;
        }
        pump();
        return mailbox.posted(peer) >= place;
      },
      deadline);
}

class Shm::SendLink final : public Link {
 public:
  SendLink(std::shared_ptr<Neighbours> neighbours, int peer, uint64_t place)
      : neighbours_(std::move(neighbours)), peer_(peer), place_(place) {}
  void wait(const Deadline& deadline) override {
    neighbours_->wait_until_sent(peer_, place_, deadline);
  }

 private:
  const std::shared_ptr<Neighbours> neighbours_;
  const int peer_;
  const uint64_t place_;
};

class Shm::RecvLink final : public Link {
 public:
  RecvLink(std::shared_ptr<Neighbours> neighbours,
           std::shared_ptr<Mailbox::Expected> expected,
           void* data,
           size_t bytes)
      : neighbours_(std::move(neighbours)),
        expected_(std::move(expected)),
        data_(data),
        bytes_(bytes) {}
  ~RecvLink() override {
    if (expected_ != nullptr) {
      neighbours_->mailbox.forget(expected_);
    }
  }
  RecvLink(const RecvLink&) = delete;
  RecvLink& operator=(const RecvLink&) = delete;
  void wait(const Deadline& deadline) override {
    neighbours_->wait_for_message(*expected_, deadline);
    neighbours_->mailbox.read(*std::exchange(expected_, nullptr), data_, bytes_);
  }

 private:
  const std::shared_ptr<Neighbours> neighbours_;
  std::shared_ptr<Mailbox::Expected> expected_;
  void* const data_;
  const size_t bytes_;
};

Shm::Shm(std::shared_ptr<rendezvous::Store> store, int rank, int size, const ShmOptions& options)
    : WatchedTransport(std::move(store),
                       rank,
                       size,
                       {.transport = "shm",
                        .group = options.group,
                        .world_ranks = options.world_ranks,
                        .job = options.job,
                        .patience = options.patience,
                        .has_ended = [this](int other) { return has_ended(other); }},
                       Deadline::after(options.timeout)),
      options_(options) {}

std::unique_ptr<WatchedTransport::Link> Shm::do_send(const void* data,
                                                     size_t bytes,
                                                     int peer,
                                                     uint32_t tag) {
  const uint64_t place = neighbours_->mailbox.send(data, bytes, peer, tag);
  waiter().ring(peer);
  return std::make_unique<SendLink>(neighbours_, peer, place);
}

std::unique_ptr<WatchedTransport::Link> Shm::do_recv(void* data,
                                                     size_t bytes,
                                                     int peer,
                                                     uint32_t tag) {
  return std::make_unique<RecvLink>(
      neighbours_, neighbours_->mailbox.expect(peer, tag), data, bytes);
}

void Shm::interrupt() {
  const std::lock_guard lock(neighbours_mutex_);
  interrupted_ = true;
  if (neighbours_ != nullptr) {
    neighbours_->waiter.leave();
  }
}

bool Shm::has_ended(int rank) {
  const std::lock_guard lock(neighbours_mutex_);
  return neighbours_ != nullptr && neighbours_->waiter.has_ended(rank);
}

void Shm::set_neighbours(std::shared_ptr<Neighbours> neighbours) {
  const std::lock_guard lock(neighbours_mutex_);
  neighbours_ = std::move(neighbours);
  if (interrupted_) {
    neighbours_->waiter.leave();
  }
}

void Shm::connect_all(const ShmOptions& options) {
  ARGOSY_CHECK(size() <= kMostShmRanks,
               "transport.shm",
               "expected {} ranks or fewer, got {}. Use the backend gloo.",
               kMostShmRanks,
               size());
  connect(options.timeout, [&](const Deadline& deadline) {
    if (size() == 1) {
      return;
    }
    // The memory, the files of mail and of blocks, then a pidfd of every rank.
    std::vector<os::UniqueFd> fds =
        rank() == kHost ? receive_all_as_host(deadline) : call_host(deadline);
    os::SharedMemory memory =
        os::SharedMemory::open(std::move(fds[0])).or_throw<Error>("transport.shm");
    os::UniqueFd mail = std::move(fds[1]);
    os::UniqueFd blocks_file = std::move(fds[2]);
    fds.erase(fds.begin(), fds.begin() + kFiles);
    set_neighbours(std::make_shared<Neighbours>(std::move(memory),
                                                std::move(mail),
                                                std::move(blocks_file),
                                                std::move(fds),
                                                rank(),
                                                size(),
                                                options_,
                                                names()));
    do_barrier(deadline);
  });
}

void Shm::refuse(const std::string& why) {
  throw ConfigError("transport.shm",
                    why +
                        ". Expected all ranks on one host, in one network namespace, as one user. "
                        "Use the backend gloo or auto.");
}

/// Rank 0 waits for a call of each other rank, who proves by the secret in the store that it
/// belongs to the group, and hands all of them what they share.
std::vector<os::UniqueFd> Shm::receive_all_as_host(const Deadline& deadline) {
  const std::string name = "argosy/shm/" + os::random_hex(16);
  const std::string secret = os::random_hex(16);
  const auto listener = os::MessageListener::listen(name).or_throw<Error>("transport.shm");
  store().set(kPlaceKey, name + " " + secret + " " + neighbourhood_id(), deadline);
  std::vector<os::UniqueFd> callers(static_cast<size_t>(size()));
  std::vector<os::UniqueFd> processes(static_cast<size_t>(size()));
  processes[kHost] = os::own_pidfd().or_throw<Error>("transport.shm");
  std::string refusal;
  for (int missing = size() - 1; missing > 0 && refusal.empty();) {
    Result<os::UniqueFd> caller = listener.accept(deadline.sooner(Deadline::after(kSlice)));
    if (!caller.ok()) {
      if (caller.failure().error_number != ETIMEDOUT) {
        throw Error("transport.shm", caller.failure().what);
      }
      if (store().check({kElsewhereKey}, deadline)) {  // before who is gone: it has gone for that
        refusal = store().get(kElsewhereKey, deadline);
        continue;
      }
      if (watch().someone_is_gone()) {
        throw LinkBroken{-1, "not all ranks came"};
      }
      if (deadline.expired()) {
        LinkTimeout late;
        for (int peer = 1; peer < size(); ++peer) {
          if (!callers[static_cast<size_t>(peer)]) {
            late.awaited.push_back(peer);
          }
        }
        throw LinkTimeout(std::move(late));
      }
      continue;
    }
    const Result<uid_t> user = os::user_of_peer(caller->get());
    if (!user.ok() || *user != ::geteuid()) {
      continue;  // another user's process, whatever it wants
    }
    // Whoever has called has its words ready; one of this user's that says nothing costs a second.
    Result<os::Message> hello =
        os::receive_message(caller->get(), deadline.sooner(Deadline::after(1s)));
    if (!hello.ok() && hello.failure().error_number == EMSGSIZE) {
      throw Error("transport.shm", "a caller's descriptors do not fit. See ulimit -n");
    }
    const std::vector<std::string> words =
        hello.ok() ? strings::split(hello->text, ' ') : std::vector<std::string>();
    if (words.size() != 2 || words[0] != secret || hello->fds.size() != 1) {
      continue;  // no rank of this group
    }
    const auto peer = static_cast<size_t>(strings::parse_int(words[1]).value_or(0));
    if (peer == 0 || peer >= callers.size() || callers[peer]) {
      continue;
    }
    callers[peer] = *std::move(caller);
    processes[peer] = std::move(hello->fds[0]);
    --missing;
  }
  if (!refusal.empty()) {
    for (const os::UniqueFd& caller : callers) {
      if (caller) {
        (void)os::send_message(caller.get(), refusal);
      }
    }
    refuse(refusal);
  }
  const auto memory = os::SharedMemory::create("argosy-shm", Segment::bytes_for(size()))
                          .or_throw<Error>("transport.shm");
  std::vector<os::UniqueFd> shared;
  shared.push_back(os::duplicate(memory.fd()).or_throw<Error>("transport.shm"));
  shared.push_back(make_mail());
  shared.push_back(Blocks::make_file());
  std::ranges::move(processes, std::back_inserter(shared));
  for (const os::UniqueFd& caller : callers) {
    if (caller) {
      welcome(caller.get(), numbers(shared), deadline);
    }
  }
  return shared;
}

std::vector<os::UniqueFd> Shm::call_host(const Deadline& deadline) {
  const std::string place = await_key(kPlaceKey, kHost, deadline);
  const size_t first = place.find(' ');
  const size_t second = place.find(' ', first + 1);
  if (second == std::string::npos || place.substr(second + 1) != neighbourhood_id()) {
    const std::string why = fmt::format("{} and {} cannot share memory: they are \"{}\" and \"{}\"",
                                        names().one(kHost),
                                        names().one(rank()),
                                        place.substr(std::min(second, place.size() - 1) + 1),
                                        neighbourhood_id());
    store().set(kElsewhereKey, why, deadline);
    refuse(why);
  }
  const auto broken = [](const Failure& failure) { return LinkBroken{kHost, failure.what}; };
  const os::UniqueFd self = os::own_pidfd().or_throw<Error>("transport.shm");
  const std::string hello =
      fmt::format("{} {}", place.substr(first + 1, second - first - 1), rank());
  const Result<os::UniqueFd> host = os::connect_messages(place.substr(0, first));
  if (!host.ok()) {
    throw broken(host.failure());
  }
  const Status sent = os::send_message(host->get(), hello, std::vector{self.get()});
  if (!sent.ok()) {
    throw broken(sent.failure());
  }
  for (;;) {
    Result<os::Message> answer =
        os::receive_message(host->get(), deadline.sooner(Deadline::after(kSlice)));
    if (answer.ok() && answer->text != kWelcome) {
      refuse(answer->text);
    }
    if (answer.ok() && answer->fds.size() == static_cast<size_t>(size()) + kFiles) {
      return std::move(answer->fds);
    }
    if (answer.ok() || answer.failure().error_number != ETIMEDOUT) {
      throw broken(answer.ok() ? Failure{"the host's message is not whole"} : answer.failure());
    }
    if (store().check({kElsewhereKey}, deadline)) {
      refuse(store().get(kElsewhereKey, deadline));
    }
    if (watch().someone_is_gone()) {
      throw LinkBroken{-1, "not all ranks came"};
    }
    if (deadline.expired()) {
      throw LinkTimeout{{kHost}};
    }
  }
}

std::unique_ptr<Transport> make_shm(std::shared_ptr<rendezvous::Store> store,
                                    int rank,
                                    int size,
                                    const ShmOptions& options) {
  auto transport = std::make_unique<Shm>(std::move(store), rank, size, options);
  transport->connect_all(options);
  return transport;
}

}  // namespace argosy::transport
