#pragma once

#include <cstddef>
#include <cstdint>
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
/// its first weights, which are a function of the seed and the id. Not thread-safe, but that
/// several threads may call pull() at once.
class RowTable final {
 public:
  /// Errors: UsageError for options that cannot be.
  explicit RowTable(SparseOptions options);

  /// Writes the weights of `ids` to `out`, [n, dim].
  void pull(std::span<const uint64_t> ids, std::span<float> out) const;
  /// Updates rows. Errors: Error when the system has no more memory; some rows are then updated.
  void push(const RowPush& push);

  /// Adds differences, [n, dim], to weights. Errors: as push().
  void add(std::span<const uint64_t> ids, std::span<const float> differences);

  [[nodiscard]] const SparseOptions& options() const { return options_; }
  [[nodiscard]] size_t rows() const { return memory_.taken(); }
  /// Returns what rows and index take of memory.
  [[nodiscard]] size_t bytes() const;

  /// Of the pushes that follow; 0 at the start.
  void set_day(int32_t day) { day_ = day; }
  /// Lets shows and clicks decay and drops rows, as ShrinkOptions says. Returns how many.
  /// Errors: UsageError for a table without statistics.
  size_t shrink();

  [[nodiscard]] size_t state_size() const { return stride_ - options_.dim; }
  /// Begins a copy of what the table holds now: what changes later does not change the copy.
  /// Lifetime: until unfreeze().
  [[nodiscard]] RowSnapshot& freeze();
  /// Copies what `slots` slots of the index have. Returns true when all is copied.
  /// Thread-safe beside pull().
  bool copy_frozen(RowSnapshot& copy, size_t slots) const;
  void unfreeze(const RowSnapshot& copy);
  /// Puts rows in their place. Errors: UsageError when they have other sizes.
  void restore(const SavedRows& saved);

 private:
  static constexpr size_t kStatistics = 3;  ///< floats: shows, clicks, day of the last push

  [[nodiscard]] float* state_at(uint32_t row) const { return memory_.at(row) + options_.dim; }
  [[nodiscard]] std::optional<uint32_t> row_for(const Entry::Push& push);
  /// Returns the slot of an id that is about to change.
  [[nodiscard]] RowIndex::Slot& slot_for(uint64_t id);
  /// Before slots move.
  void copy_the_rest();
  [[nodiscard]] uint32_t make_row(uint64_t id);
  void note(uint32_t row, float shows, float clicks);

  const SparseOptions options_;
  const size_t stride_;  ///< floats of a row: weights, state, statistics
  RowIndex index_{};
  RowMemory memory_;
  int32_t day_ = 0;
  std::vector<std::unique_ptr<RowSnapshot>> copies_{};  ///< that are being made
};

}  // namespace argosy::ps
