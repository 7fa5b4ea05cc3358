#include "argosy/transport/gloo/mesh.h"

#include <fmt/format.h>
#include <gloo/context.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/os/addresses.h"
#include "argosy/transport/gloo/meeting.h"
#include "argosy/transport/gloo/no_sigpipe.h"
#include "argosy/transport/gloo/proven_pairs.h"
#include "argosy/transport/watched_transport.h"

namespace argosy::transport {
namespace {

// Gloo's own algorithms use the slot prefixes 0x01 to 0x08.
constexpr uint64_t kCollectivePrefix = 0x41ULL << 56;
constexpr uint64_t kMessagePrefix = 0x42ULL << 56;

/// A length in so many bits: itself where it fits, else mixed (splitmix64's finaliser), so that
/// round lengths do not fall together with short ones.
uint64_t folded(uint64_t bytes, int bits) {
  if (bytes >> bits == 0) {
    return bytes;
  }
  bytes = (bytes ^ bytes >> 30) * 0xbf58476d1ce4e5b9ULL;
  bytes = (bytes ^ bytes >> 27) * 0x94d049bb133111ebULL;
  return (bytes ^ bytes >> 31) >> (64 - bits);
}

/// Gloo's thread made it; see tests/support/tsan.supp.
[[gnu::noinline]] std::string text_of(const std::exception& from_gloo) {
  return from_gloo.what();
}

}  // namespace

uint64_t collective_slot(uint32_t op, uint32_t phase, int64_t bytes) {
  return kCollectivePrefix | static_cast<uint64_t>(op) << 24 |
         static_cast<uint64_t>(phase & 0xfU) << 20 | folded(static_cast<uint64_t>(bytes), 20);
}

uint64_t message_slot(uint32_t tag, size_t bytes) {
  return kMessagePrefix | static_cast<uint64_t>(tag) << 24 | folded(bytes, 24);
}

/// Gloo's context with pairs that we connected ourselves: its own connectFullMesh knows neither our
/// deadline nor who died, and takes whoever calls.
class Mesh::MeshContext final : public ::gloo::Context {
 public:
  MeshContext(int rank, int size, const std::string& address, std::chrono::milliseconds timeout)
      : ::gloo::Context(rank, size) {
    ::gloo::transport::tcp::attr attr;
    attr.hostname = address;
    device_ = ::gloo::transport::tcp::CreateDevice(attr);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(timeout);
    setTimeout(timeout);
  }
  void take(std::vector<os::UniqueFd> connections) {
    adopt(*device_, *transportContext_, std::move(connections));
  }
};

Mesh::Pending::Pending(int peer,
                       Direction direction,
                       std::unique_ptr<::gloo::transport::UnboundBuffer> buffer)
    : peer_(peer), direction_(direction), buffer_(std::move(buffer)) {}
Mesh::Pending::Pending() = default;
Mesh::Pending::~Pending() = default;
Mesh::Pending::Pending(Pending&&) noexcept = default;
Mesh::Pending& Mesh::Pending::operator=(Pending&&) noexcept = default;

namespace {

os::Listener listen_at(const ListenOn& where) {
  const std::string host =
      where.interface.empty()
          ? where.host
          : os::interface_address(where.interface).or_throw<Error>("transport.gloo");
  return os::Listener::listen_tcp(host, 0).or_throw<Error>("transport.gloo");
}

}  // namespace

Mesh::Mesh(int rank, int size, const ListenOn& where, const Deadline& deadline)
    : rank_(rank), size_(size) {
  const NoSigpipe quiet;  // Gloo's loop inherits it
  try {
    os::Listener listener = listen_at(where);
    context_ = std::make_shared<MeshContext>(
        rank, size, os::own_address_of(listener.fd()), deadline.remaining());
    meeting_ = std::make_unique<Meeting>(rank, size, std::move(listener));
  } catch (const std::exception& e) {
    throw ConfigError(
        "transport.gloo",
        fmt::format("rank {} cannot listen on {} \"{}\": {}. Set ARGOSY_IFNAME to the interface "
                    "that the other hosts reach.",
                    rank,
                    where.interface.empty() ? "host" : "interface",
                    where.interface.empty() ? where.host : where.interface,
                    e.what()));
  }
}

Mesh::~Mesh() = default;

std::string Mesh::card() const {
  return meeting_->card();
}

void Mesh::connect(const std::vector<std::string>& cards,
                   const Deadline& deadline,
                   const std::function<void()>& look_around) {
  std::vector<os::UniqueFd> connections = meeting_->meet(cards, deadline, look_around);
  const std::unique_lock pairs(pairs_);
  const NoSigpipe quiet;
  check_open(-1);
  try {
    context_->take(std::move(connections));
  } catch (const std::exception& e) {
    throw LinkBroken{-1, text_of(e)};
  }
}

std::shared_ptr<::gloo::Context> Mesh::context() const {
  return context_;
}

void Mesh::check_open(int peer) const {
  const std::lock_guard lock(mutex_);
  if (interrupted_) {
    throw LinkBroken{peer, "the connections of this rank were closed"};
  }
}

Mesh::Pending Mesh::send(int peer, uint64_t slot, const void* data, int64_t bytes) {
  const std::shared_lock pairs(pairs_);
  const NoSigpipe quiet;
  check_open(peer);
  try {
    auto buffer = context_->createUnboundBuffer(const_cast<void*>(data),  // Gloo only reads it
                                                static_cast<size_t>(bytes));
    buffer->send(peer, slot);
    return {peer, Pending::Direction::kSend, std::move(buffer)};
  } catch (const std::exception& e) {
    throw LinkBroken{peer, text_of(e)};
  }
}

Mesh::Pending Mesh::recv(int peer, uint64_t slot, void* data, int64_t bytes) {
  const std::shared_lock pairs(pairs_);
  const NoSigpipe quiet;
  check_open(peer);
  try {
    auto buffer = context_->createUnboundBuffer(data, static_cast<size_t>(bytes));
    if (peer == kAnyRank) {
      buffer->recv(awaited(peer), slot);
    } else {
      buffer->recv(peer, slot);
    }
    return {peer, Pending::Direction::kReceive, std::move(buffer)};
  } catch (const std::exception& e) {
    throw LinkBroken{peer, text_of(e)};
  }
}

void Mesh::wait(Pending& pending, const Deadline& deadline) {
  auto* buffer = pending.buffer_.get();
  if (buffer == nullptr) {
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (interrupted_) {
      throw LinkBroken{pending.peer_, "the connections of this rank were closed"};
    }
    waiting_.insert(buffer);
  }
  const auto forget = [&] {
    const std::lock_guard lock(mutex_);
    waiting_.erase(buffer);
    idle_.notify_all();
  };
  const auto left = std::max(deadline.remaining(), std::chrono::milliseconds(1));
  bool done = false;
  int source = pending.peer_;
  try {
    done = pending.direction_ == Pending::Direction::kSend ? buffer->waitSend(left)
                                                           : buffer->waitRecv(&source, left);
  } catch (const std::exception& e) {
    forget();
    if (deadline.expired()) {
      throw LinkTimeout{awaited(pending.peer_)};
    }
    if (text_of(e).find("timeout caused pair closure") != std::string::npos) {
      // Another wait of this rank came to its deadline, and Gloo closed the connection. That wait
      // is the one to say why, for it knows who did not come; interrupt() follows when it has.
      std::unique_lock lock(mutex_);
      idle_.wait_for(lock, deadline.remaining(), [&] { return interrupted_; });
    }
    throw LinkBroken{pending.peer_, text_of(e)};
  }
  forget();
  if (!done) {
    throw LinkBroken{pending.peer_, "the connections of this rank were closed"};
  }
  pending.peer_ = source;
  pending.buffer_.reset();
}

/// The ranks that may end a wait for `peer`.
std::vector<int> Mesh::awaited(int peer) const {
  if (peer != kAnyRank) {
    return {peer};
  }
  std::vector<int> others;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) {
      others.push_back(rank);
    }
  }
  return others;
}

void Mesh::wait(std::vector<Pending>& all, const Deadline& deadline) {
  for (Pending& pending : all) {
    wait(pending, deadline);
  }
  all.clear();
}

/// False when it was done before.
bool Mesh::abort_waits() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(interrupted_, true)) {
    return false;
  }
  for (auto* buffer : waiting_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
  idle_.notify_all();
  return true;
}

void Mesh::interrupt() {
  if (!abort_waits()) {
    return;
  }
  meeting_->interrupt();
  const std::shared_lock pairs(pairs_);
  for (int peer = 0; peer < size_; ++peer) {
    try {
      if (auto& pair = context_->getPair(peer)) {
        pair->close();  // resets the connection, so that the other end notices at once
      }
    } catch (const std::exception&) {
      // What cannot be closed here goes with the context.
    }
  }
}

void Mesh::close() {
  if (!abort_waits()) {
    return;
  }
  meeting_->interrupt();
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return waiting_.empty(); });
  }
  const std::unique_lock pairs(pairs_);
  for (int peer = 0; peer < size_; ++peer) {
    context_->getPair(peer).reset();  // unlike its close(), lets the kernel send what is left
  }
}

}  // namespace argosy::transport
