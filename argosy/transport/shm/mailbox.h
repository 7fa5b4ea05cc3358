#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "argosy/os/fd.h"
#include "argosy/transport/shm/segment.h"

// Internal to the room.
namespace argosy::transport {

/// The messages of one rank. The sender copies the bytes of a message into the mail file, which is
/// memory without a name that all ranks of the group write and read. So a send needs nobody's help.
/// An envelope in shared memory tells the receiver where the bytes lie. Thread-safe.
class Mailbox final {
 public:
  /// A receive that was started. read() writes its memory.
  struct Expected {
    int from = 0;  ///< kAnyRank until a message has come
    uint32_t tag = 0;
    uint64_t number = 0;  ///< counts all receives of this rank
    std::optional<Envelope> envelope{};
  };

  Mailbox(const Segment& segment, int rank, int size, os::UniqueFd mail);

  /// Copies the message. Returns its place among all messages to `peer`, from 1. It has been sent
  /// when posted(peer) reaches that place. Throws LinkBroken when there is no memory for it.
  [[nodiscard]] uint64_t send(const void* data, size_t bytes, int peer, uint32_t tag);
  [[nodiscard]] uint64_t posted(int peer) const;

  [[nodiscard]] std::shared_ptr<Expected> expect(int from, uint32_t tag);
  /// Expected::from, which changes when a message from any rank comes.
  [[nodiscard]] int sender_of(const Expected& expected);
  /// True if the message has come.
  [[nodiscard]] bool has_come(const Expected& expected);
  /// Reads a message that has come, and frees it. Throws LinkBroken, and Mismatch for another size.
  void read(const Expected& expected, void* data, size_t bytes);
  /// Drops a receive that nobody waits for any more, and what came for it.
  void forget(const std::shared_ptr<Expected>& expected);

  /// Sends what found no room before, and takes what has come. Returns the ranks that may wait for
  /// either.
  std::vector<int> pump();

 private:
  using Queue = std::deque<std::shared_ptr<Expected>>;

  bool flush(int peer);
  [[nodiscard]] bool claim(Expected& expected, int from);
  [[nodiscard]] bool deliver(const Envelope& envelope, int from);
  bool drain(int from);
  void free(const Envelope& envelope) const;

  const Segment& segment_;
  const int rank_;
  const int size_;
  const os::UniqueFd mail_;

  std::mutex mutex_;
  uint64_t next_offset_;
  struct Peer {
    uint64_t sent = 0;                 ///< messages, waiting ones too
    std::deque<Envelope> waiting{};    ///< that found no room
    std::deque<Envelope> unclaimed{};  ///< that came and nobody expects
    Queue expected{};
  };
  std::vector<Peer> peers_;
  Queue from_any_{};
  uint64_t next_number_ = 0;
};

}  // namespace argosy::transport
