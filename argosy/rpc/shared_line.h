#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/os/memory.h"
#include "argosy/rpc/memory.h"

namespace argosy::rpc {

/// Memory that two processes of a host share. Each makes segments, writes blocks there and tells
/// the other where they lie; their descriptors travel through a Unix socket. A block is used again
/// when the reader has let go of it, which it says in the block itself. Thread-safe. Internal to
/// the room.
class SharedLine final : public std::enable_shared_from_this<SharedLine> {
 public:
  /// Where a block lies.
  struct Place {
    uint32_t segment = 0;
    uint64_t offset = 0;  ///< of its bytes
    uint64_t number = 0;  ///< of the block, for another one may lie there later
  };
  class Block;

  /// `socket`: to the other process. `most_bytes`: of all segments of this side.
  SharedLine(os::UniqueFd socket, size_t most_bytes);
  ~SharedLine();
  SharedLine(const SharedLine&) = delete;
  SharedLine& operator=(const SharedLine&) = delete;
  SharedLine(SharedLine&&) = delete;
  SharedLine& operator=(SharedLine&&) = delete;

  /// Returns a block of our side. nullopt: it does not fit. One that is sent may be used again
  /// after `expires`, if the reader has not claimed it until then.
  [[nodiscard]] std::optional<Draft> allocate(size_t bytes, const Deadline& expires);
  /// Offers `memory` to the other side. nullptr when it is no block of this line, or offered
  /// already.
  [[nodiscard]] std::shared_ptr<Block> offer(const Memory& memory);
  /// Returns the block that the other side offers.
  /// Errors: RendezvousError when the offer was withdrawn, or the message names no block.
  [[nodiscard]] Memory claim(const Place& place, size_t bytes);

  /// True when the other process has closed its end.
  [[nodiscard]] bool is_abandoned() const;

 private:
  struct Header;
  struct Segment {
    os::SharedMemory memory;
    std::map<size_t, std::shared_ptr<Block>> blocks{};  ///< by offset, those in use
  };
  [[nodiscard]] std::shared_ptr<Block> make_block(size_t bytes, const Deadline& expires);
  [[nodiscard]] static std::optional<size_t> find_gap(const Segment& segment, size_t bytes);
  static void sweep(Segment& segment);
  bool add_segment(size_t bytes);
  [[nodiscard]] std::shared_ptr<const os::SharedMemory> their_segment(uint32_t number);

  const os::UniqueFd socket_;
  const size_t most_bytes_;
  std::mutex mutex_;
  std::vector<Segment> ours_{};
  size_t bytes_ = 0;
  uint64_t blocks_ = 0;  ///< that were made so far
  std::mutex their_mutex_;
  std::vector<std::shared_ptr<const os::SharedMemory>> theirs_{};
};

/// One block of our side. Its state lies in shared memory.
class SharedLine::Block final {
 public:
  /// `whole`: what it takes of the segment; the first `bytes` behind its head are used.
  Block(std::span<std::byte> whole, size_t bytes, const Place& place, const Deadline& expires);

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const Place& place() const { return place_; }
  [[nodiscard]] size_t whole_bytes() const { return whole_.size(); }
  /// False when it is offered already.
  [[nodiscard]] bool offer();
  /// Takes the offer back, unless the reader has claimed it.
  void withdraw();
  /// True when neither side needs it.
  [[nodiscard]] bool is_free();

  std::atomic<bool> drafted = true;  ///< this side has a handle of it, as from the start

 private:
  [[nodiscard]] std::atomic<uint64_t>& state() const;

  const std::span<std::byte> whole_;
  const std::span<std::byte> bytes_;
  const Place place_;
  const Deadline expires_;
};

}  // namespace argosy::rpc
