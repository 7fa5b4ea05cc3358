#pragma once

#include <cstddef>
#include <span>

namespace argosy::transport {

/// Memory that all ranks of a group read and write; each lets go of it when it likes, and what lies
/// there stays until the last has. Where it lies differs from rank to rank. Starts at a whole page.
///
/// Nothing orders what the ranks do to it but the group's collectives: after a barrier each sees
/// what all had written before it.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  SharedBlock() = default;
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  SharedBlock(SharedBlock&&) = delete;
  SharedBlock& operator=(SharedBlock&&) = delete;

  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  /// Gives the whole pages among these bytes back to the system: they are zeros then, for all
  /// ranks.
  virtual void discard(size_t offset, size_t count) noexcept = 0;
};

}  // namespace argosy::transport
