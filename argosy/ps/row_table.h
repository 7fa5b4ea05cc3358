#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/ps/entry.h"
#include "argosy/ps/row_index.h"
#include "argosy/ps/row_memory.h"
#include "argosy/ps/row_rule.h"
#include "argosy/ps/row_snapshot.h"
#include "argosy/ps/row_spill.h"
#include "argosy/ps/spilled_rows.h"

namespace argosy::ps {

/// When rows of clicks that nobody sees any more are dropped.
struct ShrinkOptions {
  float show_click_decay = 0.98F;     ///< of a row's shows and clicks, at each shrink()
  float delete_score = 0.8F;          ///< a row with less is dropped
  int delete_after_unseen_days = 30;  ///< and one that was not pushed for longer
  float nonclick = 0.1F;              ///< score = (shows − clicks)·nonclick + clicks·click
  float click = 1;
};

struct SparseOptions {
  std::string name{};
  size_t dim = 0;  ///< weights of a row
  std::shared_ptr<const RowRule> rule = adagrad();
  float initial_range = 1e-4F;  ///< new rows are uniform in ±this: Paddle's default
  uint64_t seed = 0;
  Entry entry{};
  /// Keeps shows, clicks and the day of the last push of each row, which shrink() needs.
  bool statistics = false;
  ShrinkOptions shrink{};
};

/// A gradient of many rows.
struct RowPush {
  std::span<const uint64_t> ids{};     ///< [n], each once
  std::span<const float> gradients{};  ///< [n, dim]
  std::span<const float> shows{};      ///< [n]; empty: 1 each
  std::span<const float> clicks{};     ///< [n]; empty: 0 each
  double lr = 0.05;
};

/// Rows of 64-bit ids, made when they are first pushed to. A row that nobody has pushed to reads as
/// its first weights, which are a function of the seed and the id. Where rows may go to disk, what
/// is said of them here holds for those on disk too. Not thread-safe, but that several threads may
/// call pull() at once.
class RowTable final {
 public:
  /// `spill`: where rows go that have no room in memory; nullptr: all stay.
  /// Errors: UsageError for options that cannot be.
  explicit RowTable(SparseOptions options, std::shared_ptr<SpillPart> spill = nullptr);

  /// Writes the weights of `ids` to `out`, [n, dim]. Errors: DiskError.
  void pull(std::span<const uint64_t> ids, std::span<float> out) const;
  /// Updates rows. Errors: Error when the system has no more memory, and DiskError without
  /// bring_back(); some rows are then updated.
  void push(const RowPush& push);

  /// Gives rows these weights, [n, dim]; their state stays. Errors: as push().
  void set(std::span<const uint64_t> ids, std::span<const float> weights);
  /// Adds differences, [n, dim], to weights. Errors: as push().
  void add(std::span<const uint64_t> ids, std::span<const float> differences);

  /// Reads those of the rows that lie on disk, and all else that a push() to these ids would read,
  /// so that it meets no error of the disk. Takes longer without: it would read row by row.
  /// Errors: DiskError. No row has changed then.
  void bring_back(std::span<const uint64_t> ids);
  /// Moves this share, 0 to 1, of the rows in memory to disk: those that were not pushed to for
  /// longest. Errors: DiskError. No row has changed then.
  void make_room(double share);

  [[nodiscard]] const SparseOptions& options() const { return options_; }
  [[nodiscard]] size_t rows() const { return memory_.taken() + rows_on_disk(); }
  /// Returns what rows and index take of memory.
  [[nodiscard]] size_t bytes() const;
  [[nodiscard]] size_t rows_on_disk() const { return spilled_ == nullptr ? 0 : spilled_->size(); }
  /// Returns what the numbers of the rows on disk take there.
  [[nodiscard]] size_t disk_bytes() const { return rows_on_disk() * memory_.row_bytes(); }
  /// Returns how many of the rows lie on disk.
  [[nodiscard]] size_t count_on_disk(std::span<const uint64_t> ids) const;

  /// Of the pushes that follow; 0 at the start.
  void set_day(int32_t day) { day_ = day; }
  /// Lets shows and clicks decay and drops rows, as ShrinkOptions says. Returns how many.
  /// Errors: UsageError for a table without statistics; DiskError, after which nothing has changed.
  size_t shrink();
  /// Reads what shrink() will read from disk, so that it meets no error there. No row moves between
  /// both. Errors: DiskError; nothing has changed then.
  void plan_shrink();

  [[nodiscard]] size_t state_size() const { return stride_ - options_.dim; }
  /// Begins a copy of what the table holds now: what changes later does not change the copy.
  /// Lifetime: until unfreeze().
  [[nodiscard]] RowSnapshot& freeze();
  /// Copies what `slots` slots of the index have. Returns true when all is copied.
  /// Thread-safe beside pull(). Errors: DiskError, after which it may be called again.
  bool copy_frozen(RowSnapshot& copy, size_t slots) const;
  void unfreeze(const RowSnapshot& copy);
  /// Puts rows in their place. Errors: UsageError when they have other sizes.
  void restore(const SavedRows& saved);

 private:
  static constexpr size_t kStatistics = 3;  ///< floats: shows, clicks, day of the last push

  [[nodiscard]] float* state_at(uint32_t row) const { return memory_.at(row) + options_.dim; }
  /// Returns shows, clicks and day of a row.
  [[nodiscard]] float* statistics_of(float* row) const { return row + stride_ - kStatistics; }
  void decay(float* statistics) const;
  [[nodiscard]] bool is_over(const float* statistics) const;
  /// Visits copies of rows on disk as they are now.
  void read_spilled(std::span<const uint64_t> ids,
                    const std::function<void(size_t i, std::span<float> row)>& visit) const;
  void count_bytes();
  [[nodiscard]] std::optional<uint32_t> row_for(const Entry::Push& push);
  /// Returns the slot of an id that is about to change.
  [[nodiscard]] RowIndex::Slot& slot_for(uint64_t id);
  /// Before ids go.
  void copy_the_rest();
  [[nodiscard]] uint32_t take_row();
  [[nodiscard]] uint32_t make_row(uint64_t id);
  void note(uint32_t row, float shows, float clicks);

  const SparseOptions options_;
  const size_t stride_;  ///< floats of a row: weights, state, statistics
  RowIndex index_{};
  RowMemory memory_;
  std::unique_ptr<SpilledRows> spilled_{};          ///< nullptr: all rows stay in memory
  std::optional<std::vector<uint64_t>> to_drop_{};  ///< of the rows on disk: see plan_shrink()
  int32_t day_ = 0;
  uint32_t shrinks_ = 0;  ///< a row on disk decays when it is read, by those since it went there
  std::vector<std::unique_ptr<RowSnapshot>> copies_{};  ///< that are being made
};

}  // namespace argosy::ps
