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

/// The messages of one rank. A message's bytes are copied into the mail file, memory without a name
/// that all ranks of the group write to and read from, so that a send needs nobody's help; an
/// envelope in shared memory tells the receiver where they lie. Thread-safe.
class Mailbox final {
 public:
  /// A receive that was begun: its memory is written by read().
  struct Expected {
    int from = 0;
    uint32_t tag = 0;
    std::optional<Envelope> envelope{};
  };

  Mailbox(const Segment& segment, int rank, int size, os::UniqueFd mail);

  /// Copies the message. Returns its place in the order of all messages to `peer`, from 1: it has
  /// been sent when posted(peer) reaches it. Throws LinkBroken when there is no memory for it.
  [[nodiscard]] uint64_t send(const void* data, size_t bytes, int peer, uint32_t tag);
  [[nodiscard]] uint64_t posted(int peer) const;

  [[nodiscard]] std::shared_ptr<Expected> expect(int from, uint32_t tag);
  /// Whether the message has come.
  [[nodiscard]] bool has_come(const Expected& expected);
  /// Reads what has come, and frees it. Throws LinkBroken, and Mismatch for another size.
  void read(const Expected& expected, void* data, size_t bytes);
  /// Nobody waits for it any more; what came for it is dropped.
  void forget(const std::shared_ptr<Expected>& expected);

  /// Sends what found no room before, and takes what has come. Returns the ranks for which that may
  /// matter.
  std::vector<int> pump();

 private:
  bool flush(int peer);
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
    std::deque<std::shared_ptr<Expected>> expected{};
  };
  std::vector<Peer> peers_;
};

}  // namespace argosy::transport
