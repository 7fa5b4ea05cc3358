#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "argosy/ps/disk_rows.h"

namespace argosy::ps {

struct SpillOptions {
  /// Bytes that rows and their ids may take in this process. A quarter of it, 1 MiB at least, is
  /// the disk's cache. The rows of one push come on top. At least 1.
  size_t memory_limit = 0;
  /// A folder, best on a disk of its own, where each server makes one for itself. Empty: the
  /// system's folder for temporary files.
  std::string directory{};
};

/// What a server's process may take of memory for rows, and the disk for the others. Its partitions
/// have equal parts of it. Thread-safe.
class RowSpill final {
 public:
  /// Errors: DiskError.
  explicit RowSpill(const SpillOptions& options);

  [[nodiscard]] DiskRows& disk() { return disk_; }
  /// Returns the bytes that each of the partitions may take.
  [[nodiscard]] size_t quota() const;

  void add_partition() { ++partitions_; }
  void remove_partition() { --partitions_; }

 private:
  const size_t for_rows_;  ///< the limit without the disk's cache
  DiskRows disk_;
  std::atomic<size_t> partitions_ = 0;
};

/// What the tables of one partition take of it. Thread-safe.
class SpillPart final {
 public:
  explicit SpillPart(std::shared_ptr<RowSpill> server);
  ~SpillPart();
  SpillPart(const SpillPart&) = delete;
  SpillPart& operator=(const SpillPart&) = delete;
  SpillPart(SpillPart&&) = delete;
  SpillPart& operator=(SpillPart&&) = delete;

  [[nodiscard]] DiskRows& disk() { return server_->disk(); }
  /// Counts bytes more, or less, of rows in memory and of what must stay there.
  void count(ptrdiff_t rows, ptrdiff_t others);
  /// Returns which share of the rows in memory has to go to disk, 0 to 1. Says so once in the log
  /// when what must stay is more than all that may be.
  [[nodiscard]] double excess();

 private:
  const std::shared_ptr<RowSpill> server_;
  std::atomic<ptrdiff_t> rows_ = 0;
  std::atomic<ptrdiff_t> others_ = 0;
  std::atomic<bool> said_ = false;
};

}  // namespace argosy::ps
