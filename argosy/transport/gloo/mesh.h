#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "argosy/base/deadline.h"

namespace gloo {
class Context;
namespace transport {
class UnboundBuffer;
}
}  // namespace gloo

// Internal to the room: Gloo's connections and buffers behind functions that speak our errors.
namespace argosy::transport {

class Meeting;

/// Where to listen. Exactly one of the two is set.
struct ListenOn {
  std::string interface {};
  std::string host{};
};

/// Return the name of a stream of messages between two ranks. Messages of one slot arrive in order.
/// The length is part of the name, because Gloo ends the program when a message is longer than the
/// buffer that waits for it. So different lengths do not meet: never below 1 MiB (16 MiB for
/// messages); of larger ones one pair in a million does.
[[nodiscard]] uint64_t collective_slot(uint32_t op, uint32_t phase, int64_t bytes);
[[nodiscard]] uint64_t message_slot(uint32_t tag, size_t bytes);

/// One TCP connection to each other rank.
///
/// Thread-safe. Throws LinkBroken and LinkTimeout; after either all connections are unusable.
class Mesh final {
 public:
  /// A send or a receive that was started. Lifetime: must not outlive its memory, which it releases
  /// when it is destroyed.
  class Pending {
   public:
    Pending();
    enum class Direction { kSend, kReceive };

    Pending(int peer,
            Direction direction,
            std::unique_ptr<::gloo::transport::UnboundBuffer> buffer);
    ~Pending();
    Pending(Pending&&) noexcept;
    Pending& operator=(Pending&&) noexcept;
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

    /// The other end. kAnyRank until a message from any rank has come.
    [[nodiscard]] int peer() const { return peer_; }

   private:
    friend class Mesh;
    int peer_ = -1;
    Direction direction_ = Direction::kReceive;
    std::unique_ptr<::gloo::transport::UnboundBuffer> buffer_;
  };

  /// Listens. Errors: ConfigError when the interface or host is not there.
  Mesh(int rank, int size, const ListenOn& where, const Deadline& deadline);
  ~Mesh();
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  Mesh(Mesh&&) = delete;
  Mesh& operator=(Mesh&&) = delete;

  /// Returns where and with which key the others reach this rank. It is a secret of the group, and
  /// goes into the store.
  [[nodiscard]] std::string card() const;
  /// Connects to all other ranks; `cards` hold what their card() said. A connection carries nothing
  /// before both ends have proven that they know the group's keys. See Meeting::meet().
  void connect(const std::vector<std::string>& cards,
               const Deadline& deadline,
               const std::function<void()>& look_around);

  [[nodiscard]] Pending send(int peer, uint64_t slot, const void* data, int64_t bytes);
  /// `peer`: kAnyRank is one too.
  [[nodiscard]] Pending recv(int peer, uint64_t slot, void* data, int64_t bytes);
  void wait(Pending& pending, const Deadline& deadline);
  void wait(std::vector<Pending>& all, const Deadline& deadline);

  /// Returns Gloo's context, for its own algorithms.
  [[nodiscard]] std::shared_ptr<::gloo::Context> context() const;

  /// Makes all waits and all later calls throw, and resets the connections.
  void interrupt();
  /// Does the same, but data that was sent still arrives.
  void close();

 private:
  class MeshContext;

  void check_open(int peer) const;
  [[nodiscard]] std::vector<int> awaited(int peer) const;
  bool abort_waits();

  const int rank_;
  const int size_;
  std::shared_ptr<MeshContext> context_;
  std::unique_ptr<Meeting> meeting_;
  std::shared_mutex pairs_;  ///< shared to use Gloo's pairs, exclusive to drop them
  mutable std::mutex mutex_;
  std::condition_variable idle_;  ///< a wait has ended, or all were interrupted
  bool interrupted_ = false;
  std::unordered_set<::gloo::transport::UnboundBuffer*> waiting_;
};

}  // namespace argosy::transport
