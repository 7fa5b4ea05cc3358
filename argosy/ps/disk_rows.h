#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace argosy::ps {

/// Rows on disk, by table and id: RocksDB in a folder of this process's own, which goes with this
/// object. Nothing of it outlives the process, so it keeps no log. Thread-safe.
class DiskRows final {
 public:
  /// A copy of a row as it was put, and the number that was put with it. Lifetime: of the call.
  using Visit = std::function<void(size_t i, std::span<float> row, uint32_t stamp)>;

  /// `directory`: see SpillFolder. `cache_bytes`: of memory for what was read, and for what waits
  /// to be written. Errors: DiskError.
  DiskRows(const std::string& directory, size_t cache_bytes);
  ~DiskRows();
  DiskRows(const DiskRows&) = delete;
  DiskRows& operator=(const DiskRows&) = delete;
  DiskRows(DiskRows&&) = delete;
  DiskRows& operator=(DiskRows&&) = delete;

  /// Returns a number for a table. Its rows are apart from those of others.
  [[nodiscard]] uint32_t add_table();
  /// Drops all rows of the table.
  void remove_table(uint32_t table);

  /// Puts rows, and `stamp` with each: all of them, or none. Errors: DiskError.
  void put(uint32_t table,
           std::span<const uint64_t> ids,
           const std::function<std::span<const float>(size_t i)>& row,
           uint32_t stamp);
  /// Visits rows that were put, in the order of `ids`.
  /// Errors: DiskError, also for one that is not there; those before it have been visited.
  void get(uint32_t table, std::span<const uint64_t> ids, const Visit& visit) const;
  /// Drops rows. One that cannot be dropped takes space, and nothing else.
  void erase(uint32_t table, std::span<const uint64_t> ids);

  [[nodiscard]] const std::string& folder() const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::ps
