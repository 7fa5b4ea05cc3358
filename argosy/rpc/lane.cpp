#include "argosy/rpc/lane.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/os/futex.h"

namespace argosy::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

enum : uint32_t { kAway = 0, kRung = 1, kLooking = 2, kAsleep = 3 };
enum : uint32_t { kNotYet = 0, kOpen = 1, kClosed = 2 };

/// How often a thread that sleeps looks whether the lane is closed, should nobody tell it.
constexpr milliseconds kGlance{1000};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

/// What lies in the memory.
struct Lane::Shared {
  alignas(64) std::atomic<uint32_t> state;
  struct Direction {
    Ring::Control control;
    alignas(64) std::array<std::byte, Ring::kBytes> data;
  };
  Direction requests;
  Direction replies;
};

Result<os::SharedMemory> Lane::make_memory() {
  return os::SharedMemory::create("argosy-rpc-lane", sizeof(Shared));
}

bool Lane::is_memory(const os::SharedMemory& memory) {
  return memory.bytes().size() == sizeof(Shared);
}

Lane::Lane(os::UniqueFd socket, os::SharedMemory memory, End end)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      shared_(*reinterpret_cast<Shared*>(memory_.bytes().data())),
      out_(end == End::kCaller ? shared_.requests.control : shared_.replies.control,
           end == End::kCaller ? shared_.requests.data : shared_.replies.data),
      in_(end == End::kCaller ? shared_.replies.control : shared_.requests.control,
          end == End::kCaller ? shared_.replies.data : shared_.requests.data) {}

void Lane::open() {
  uint32_t expected = kNotYet;
  (void)shared_.state.compare_exchange_strong(expected, kOpen);
}

bool Lane::is_new() const {
  return shared_.state.load(std::memory_order_acquire) == kNotYet && !is_closed_here();
}

bool Lane::is_open() const {
  return shared_.state.load(std::memory_order_acquire) == kOpen && !is_closed_here();
}

bool Lane::said_goodbye() const {
  return shared_.state.load(std::memory_order_acquire) == kClosed;
}

/// Whoever reads leaves soon, and then nobody does: what was not read by then never is, and the
/// other side may rely on it.
void Lane::close() {
  closed_.store(true, std::memory_order_release);
  nudge();
  const std::lock_guard right(read_mutex_);
  shared_.state.store(kClosed, std::memory_order_release);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

void Lane::give_up() {
  closed_.store(true, std::memory_order_release);
  nudge();
  ::shutdown(socket_.get(), SHUT_RD);
}

Lane::Sent Lane::send(Kind kind,
                      uint64_t call,
                      std::string_view message,
                      const std::vector<Memory>& apart,
                      const Deadline& deadline) {
  Sent sent;
  const auto put_all = [&](Kind last, Kind before, std::span<const std::byte> bytes) {
    for (bool more = true; more; sent.begun = true) {
      const size_t size = std::min(bytes.size(), Ring::kMostInFrame);
      more = size < bytes.size();
      sent.end = put(more ? before : last, call, bytes.first(size), deadline);
      if (!sent.end) {
        return false;
      }
      bytes = bytes.subspan(size);
    }
    return true;
  };
  bool whole = put_all(kind, Kind::kPart, std::as_bytes(std::span(message)));
  for (const Memory& memory : apart) {
    whole = whole && (memory.size() == 0 || put_all(Kind::kRaw, Kind::kRaw, memory.bytes()));
  }
  return sent;
}

std::optional<uint64_t> Lane::put(Kind kind,
                                  uint64_t call,
                                  std::span<const std::byte> bytes,
                                  const Deadline& deadline) {
  constexpr microseconds kPause{100};
  for (;;) {
    if (is_closed_here()) {
      return std::nullopt;
    }
    {
      std::unique_lock lock(write_mutex_);
      try {
        if (out_.put(static_cast<uint32_t>(kind), call, bytes)) {
          const uint64_t end = out_.position();
          lock.unlock();
          ring();
          return end;
        }
      } catch (const RendezvousError& error) {
        log::warn("{}", error.what());
        return std::nullopt;
      }
    }
    if (deadline.expired() || is_abandoned()) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(kPause);  // 256 KiB of frames wait to be read
  }
}

/// The reader's word is read after the frame is there, and the reader looks for frames after it has
/// changed its word: one of both sees the other.
void Lane::ring() {
  std::atomic<uint32_t>& reader = out_.reader();
  uint32_t state = reader.load();
  if (state == kAway && reader.compare_exchange_strong(state, kRung)) {
    (void)::send(socket_.get(), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);  // full of them: one will do
  } else if (state == kAsleep && reader.compare_exchange_strong(state, kLooking)) {
    os::futex_wake_all(reader);
  }
}

void Lane::nudge() {
  uint32_t asleep = kAsleep;
  if (in_.reader().compare_exchange_strong(asleep, kLooking)) {
    os::futex_wake_all(in_.reader());
  }
}

bool Lane::sleep() const {
  char byte = 0;
  ssize_t got = -1;
  do {
    got = ::recv(socket_.get(), &byte, 1, 0);
  } while (got < 0 && errno == EINTR);
  return got > 0;
}

std::optional<Lane::Reading> Lane::try_read() {
  std::unique_lock right(read_mutex_, std::try_to_lock);
  if (!right || is_closed_here()) {
    return std::nullopt;
  }
  return Reading(*this, std::move(right));
}

Lane::Reading::Reading(Lane& lane, std::unique_lock<std::mutex> right)
    : lane_(&lane), right_(std::move(right)) {
  become(kLooking);
}

std::optional<Ring::Frame> Lane::Reading::look_for(microseconds look) {
  constexpr int kLooksPerClock = 16;
  const auto until = Deadline::Clock::now() + look;
  do {
    for (int i = 0; i < kLooksPerClock; ++i) {
      if (lane_->is_closed_here()) {
        return std::nullopt;
      }
      if (std::optional<Ring::Frame> frame = lane_->in_.take()) {
        return frame;
      }
      relax();
    }
    // It does not yield: where other programs want the core, it would be theirs for milliseconds.
  } while (Deadline::Clock::now() < until);
  return std::nullopt;
}

std::optional<Ring::Frame> Lane::Reading::next(microseconds look) {
  for (;;) {
    if (std::optional<Ring::Frame> frame = look_for(look)) {
      return frame;
    }
    if (leave()) {
      return std::nullopt;
    }
  }
}

std::optional<Ring::Frame> Lane::Reading::await(const std::function<bool()>& done,
                                                const Deadline& deadline) {
  for (;;) {
    if (std::optional<Ring::Frame> frame = look_for(kLook)) {
      return frame;
    }
    if (lane_->is_closed_here() || done() || deadline.expired()) {
      if (leave()) {
        return std::nullopt;
      }
      continue;
    }
    become(kAsleep);
    if (lane_->in_.is_empty() && !lane_->is_closed_here() && !done()) {
      os::futex_wait(lane_->in_.reader(), kAsleep, std::min(kGlance, deadline.remaining()));
    }
    become(kLooking);
  }
}

/// It looks once more after it has let go: a thread that was rung for a frame meanwhile, and found
/// that somebody reads, sleeps again and relies on this one.
bool Lane::Reading::leave() {
  become(kAway);
  right_.unlock();
  if (lane_->in_.is_empty() || lane_->is_closed_here() || !right_.try_lock()) {
    return true;
  }
  become(kLooking);
  return false;
}

template <typename Proto>
bool Arriving<Proto>::take(const Ring::Frame& frame) {
  const auto kind = static_cast<Lane::Kind>(frame.kind);
  if (kind == Lane::Kind::kRaw) {
    if (!coming_) {
      throw RendezvousError("rpc.lane", "memory came before its message");
    }
    coming_->take(std::as_bytes(std::span(frame.bytes)));
    return coming_->is_whole();
  }
  if (coming_ || frame.bytes.size() > most_bytes_ - std::min(parts_.size(), most_bytes_)) {
    throw RendezvousError("rpc.lane", "a message came where none was expected, or a longer one");
  }
  parts_ += frame.bytes;
  if (kind == Lane::Kind::kPart) {
    return false;
  }
  if (!message_.ParseFromString(parts_)) {
    throw RendezvousError("rpc.lane", "the message cannot be read");
  }
  parts_ = {};
  coming_.emplace(message_.memories(), line_, most_bytes_);
  return coming_->is_whole();
}

template class Arriving<wire::Request>;
template class Arriving<wire::Reply>;

}  // namespace argosy::rpc
