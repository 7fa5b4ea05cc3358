#pragma once

#include <cstddef>
#include <span>

namespace argosy::transport {

/// Memory that all ranks of a group read and write. Its address differs from rank to rank, and is
/// that of a whole page.
///
/// Lifetime: each rank drops it when it likes; the contents stay until the last rank has.
/// Thread-safety: only the group's collectives order what the ranks do. After a barrier each rank
/// sees what all had written before it.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  SharedBlock() = default;
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;
  SharedBlock(SharedBlock&&) = delete;
  SharedBlock& operator=(SharedBlock&&) = delete;

  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  /// Gives the whole pages among these bytes back to the system. They are zeros then, on all ranks.
  virtual void discard(size_t offset, size_t count) noexcept = 0;
};

}  // namespace argosy::transport
