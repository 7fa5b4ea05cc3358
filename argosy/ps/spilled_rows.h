#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "argosy/ps/row_index.h"
#include "argosy/ps/row_memory.h"
#include "argosy/ps/row_spill.h"

namespace argosy::ps {

/// The rows of one table that lie on disk, and which others go there next: a hand goes round the
/// index and takes rows that were not used since it came by last. Not thread-safe, but that several
/// threads may read.
class SpilledRows final {
 public:
  explicit SpilledRows(std::shared_ptr<SpillPart> part);
  ~SpilledRows();
  SpilledRows(const SpilledRows&) = delete;
  SpilledRows& operator=(const SpilledRows&) = delete;
  SpilledRows(SpilledRows&&) = delete;
  SpilledRows& operator=(SpilledRows&&) = delete;

  /// Returns how many rows lie on disk.
  [[nodiscard]] size_t size() const { return size_; }

  /// Notes that a row in memory is used.
  void use(uint32_t row) {
    if (row >= used_.size()) {
      used_.resize(row + size_t{1});
    }
    used_[row] = true;
  }
  /// Moves rows from memory to disk, with `stamp`: as many as wanted, where so many are there.
  /// Errors: DiskError; those that were not moved are in memory then.
  void evict(size_t wanted, RowIndex& index, RowMemory& memory, uint32_t stamp);

  /// Visits rows that lie on disk. Errors: as DiskRows::get().
  void read(std::span<const uint64_t> ids, const DiskRows::Visit& visit) const;
  /// Says that one of them is in memory again.
  void came_back() { --size_; }
  /// Drops them. The caller takes their slots out of the index.
  void drop(std::span<const uint64_t> ids);

  /// Counts what the table takes of memory now.
  void count(const RowIndex& index, const RowMemory& memory);

 private:
  /// Returns the slots of rows that go next, `most` or fewer, from one round of the hand at most.
  [[nodiscard]] std::vector<RowIndex::Slot*> choose(size_t most, RowIndex& index);

  const std::shared_ptr<SpillPart> part_;
  const uint32_t table_;
  size_t size_ = 0;
  std::vector<bool> used_{};  ///< by row in memory, since the hand came by
  size_t hand_ = 0;           ///< a place of the index
  ptrdiff_t counted_rows_ = 0;
  ptrdiff_t counted_others_ = 0;
};

}  // namespace argosy::ps
