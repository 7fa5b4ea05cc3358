#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/os/memory.h"
#include "argosy/os/unix_socket.h"
#include "argosy/rpc/memory.h"
#include "argosy/rpc/message.h"
#include "argosy/rpc/ring.h"

namespace argosy::rpc {

/// Carries calls between two processes of a host without the kernel, while both keep up: a ring of
/// frames in either direction, in memory that both map. A socket beside it wakes the reader that
/// has gone to sleep, and says when the other process is gone.
///
/// One thread of a process reads at a time: whoever holds a Reading. It looks for a moment before
/// it gives up, because the answer to a short call comes sooner than a sleeping thread wakes. What
/// the reader does stands in a word of the ring, which the writer sees after each frame:
///
///   - kAway: nobody reads. The writer sends a byte through the socket, for a thread in sleep().
///   - kRung: it has sent one.
///   - kLooking: somebody looks.
///   - kAsleep: somebody sleeps on this very word. The writer wakes it.
///
/// Thread-safe. Internal to the room.
class Lane final {
 public:
  enum class Kind : uint32_t {
    kPart = 1,  ///< of a Request or a Reply that has more
    kRequest,   ///< a Request, or the last part of one
    kReply,     ///< a Reply, or the last part of one
    kRaw,       ///< memory that follows it
    kRefusal,   ///< why the function did not run
    kCancel,    ///< nobody waits for the call
  };
  enum class End { kCaller, kServer };
  class Reading;

  /// Makes the memory of a lane.
  [[nodiscard]] static Result<os::SharedMemory> make_memory();
  /// True if it has the size of one.
  [[nodiscard]] static bool is_memory(const os::SharedMemory& memory);
  /// `socket`: to the other process. `memory`: is_memory().
  Lane(os::UniqueFd socket, os::SharedMemory memory, End end);
  ~Lane() { close(); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  Lane(Lane&&) = delete;
  Lane& operator=(Lane&&) = delete;

  /// The server says that it reads.
  void open();
  /// True before open() and any end.
  [[nodiscard]] bool is_new() const;
  /// True between open() and the end of either side.
  [[nodiscard]] bool is_open() const;
  /// Ends it for both sides. Afterwards this side reads nothing more. Idempotent. Blocks: until no
  /// thread holds a Reading.
  void close();
  /// The same where this very thread may hold one: lets sleep() return false, after which somebody
  /// calls close().
  void give_up();
  /// True after either.
  [[nodiscard]] bool is_closed_here() const { return closed_.load(std::memory_order_acquire); }
  /// True if the other side has called close(), rather than died.
  [[nodiscard]] bool said_goodbye() const;
  /// True if the other process has closed its socket.
  [[nodiscard]] bool is_abandoned() const { return os::is_hung_up(socket_.get()); }

  /// How far a message came.
  struct Sent {
    bool begun = false;             ///< a part of it is in the ring
    std::optional<uint64_t> end{};  ///< where it ends there; nullopt: it is not whole
    [[nodiscard]] bool is_whole() const { return end.has_value(); }
  };
  /// Sends a message and the memory that follows it. Blocks: while the ring is full. It ends early
  /// when the lane is closed, or `deadline` passed.
  [[nodiscard]] Sent send(Kind kind,
                          uint64_t call,
                          std::string_view message,
                          const std::vector<Memory>& apart,
                          const Deadline& deadline);
  /// True if the other side has read all up to there.
  [[nodiscard]] bool has_read(uint64_t position) const { return out_.read_so_far() >= position; }

  /// Returns nullopt when another thread reads, or the lane is closed.
  [[nodiscard]] std::optional<Reading> try_read();
  /// Sleeps until somebody has to read. False: the other side is gone, or this one has closed.
  [[nodiscard]] bool sleep() const;
  /// Wakes a thread that sleeps in Reading::await().
  void nudge();

 private:
  struct Shared;

  /// Returns where the frame ends in the ring.
  std::optional<uint64_t> put(Kind kind,
                              uint64_t call,
                              std::span<const std::byte> bytes,
                              const Deadline& deadline);
  void ring();

  const os::UniqueFd socket_;
  const os::SharedMemory memory_;
  Shared& shared_;
  Ring out_, in_;
  std::mutex write_mutex_;
  std::mutex read_mutex_;
  std::atomic<bool> closed_ = false;
};

/// The right to read. It ends where leave() returns true, or next() or await() nothing.
class Lane::Reading final {
 public:
  /// How long it looks before it gives up.
  static constexpr std::chrono::microseconds kLook{50};

  explicit Reading(Lane& lane, std::unique_lock<std::mutex> right);

  /// Returns the next frame, or nullopt when none comes within `look`.
  [[nodiscard]] std::optional<Ring::Frame> next(std::chrono::microseconds look = kLook);
  /// The same, but sleeps until a frame comes, `done()` or the deadline. nudge() lets it ask
  /// again.
  [[nodiscard]] std::optional<Ring::Frame> await(const std::function<bool()>& done,
                                                 const Deadline& deadline);
  /// Returns false, and nothing changes, when there is another frame.
  [[nodiscard]] bool leave();

 private:
  [[nodiscard]] std::optional<Ring::Frame> look_for(std::chrono::microseconds look);
  void become(uint32_t state) { lane_->in_.reader().store(state); }

  Lane* lane_;
  std::unique_lock<std::mutex> right_;
};

/// A Request or a Reply whose frames come one after the other.
template <typename Proto>
class Arriving final {
 public:
  /// `line`, `most_bytes`: see Coming.
  Arriving(SharedLine* line, size_t most_bytes) : line_(line), most_bytes_(most_bytes) {}

  /// Returns true when it is whole. Errors: RendezvousError when it cannot be.
  [[nodiscard]] bool take(const Ring::Frame& frame);
  [[nodiscard]] Proto& message() { return message_; }
  [[nodiscard]] std::vector<Memory> memories() && { return std::move(*coming_).memories(); }

 private:
  SharedLine* line_;
  const size_t most_bytes_;
  std::string parts_{};
  Proto message_{};
  std::optional<Coming> coming_{};
};

extern template class Arriving<wire::Request>;
extern template class Arriving<wire::Reply>;

}  // namespace argosy::rpc
