#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "argosy/optim/lr_plateau.h"
#include "argosy/optim/lr_scheduler.h"

namespace argosy::optim {

namespace detail {
/// True of a schedule of another library, which moves by step().
template <typename T>
constexpr bool kHasStep = requires(std::remove_cvref_t<T>& other) {
  other.step();
};
}  // namespace detail

/// A schedule that counts updates of the parameters. It has no on_epoch_end() and is no
/// EpochScheduler, so the unit cannot be mistaken. Copies share only the optimizer.
class StepScheduler final {
 public:
  explicit StepScheduler(LRScheduler scheduler) : scheduler_(std::move(scheduler)) {}

  /// Call it after an update (`optimizer.step()`; with accumulation once for all micro-batches).
  void on_step() { scheduler_.step(); }

  [[nodiscard]] static constexpr ScheduleUnit unit() noexcept { return ScheduleUnit::kStep; }
  [[nodiscard]] double last_lr() const { return scheduler_.last_lr(); }
  [[nodiscard]] const std::string& parameters() const { return scheduler_.parameters(); }
  [[nodiscard]] int64_t last_step() const noexcept { return scheduler_.last_step(); }
  /// The state includes the unit. Loading throws a CheckpointError as LRScheduler does, and for
  /// another unit.
  [[nodiscard]] LRSchedulerState state_dict() const;
  void load_state_dict(const LRSchedulerState& state);

 private:
  LRScheduler scheduler_;
};

/// A schedule that counts epochs; see StepScheduler.
class EpochScheduler final {
 public:
  explicit EpochScheduler(LRScheduler scheduler) : scheduler_(std::move(scheduler)) {}

  /// An epoch has ended.
  void on_epoch_end() { scheduler_.step(); }

  [[nodiscard]] static constexpr ScheduleUnit unit() noexcept { return ScheduleUnit::kEpoch; }
  [[nodiscard]] double last_lr() const { return scheduler_.last_lr(); }
  [[nodiscard]] const std::string& parameters() const { return scheduler_.parameters(); }
  [[nodiscard]] int64_t last_epoch() const noexcept { return scheduler_.last_step(); }
  [[nodiscard]] LRSchedulerState state_dict() const;
  void load_state_dict(const LRSchedulerState& state);

 private:
  LRScheduler scheduler_;
};

/// Declares the unit of a schedule:
///
///     auto scheduler = optim::per_epoch(optim::CosineAnnealingLR(optimizer, {.t_max = 90}));
///     auto warmup = optim::per_step(optim::LinearWarmup(optimizer, {.warmup_steps = 500}));
[[nodiscard]] inline StepScheduler per_step(LRScheduler scheduler) {
  return StepScheduler(std::move(scheduler));
}
[[nodiscard]] inline EpochScheduler per_epoch(LRScheduler scheduler) {
  return EpochScheduler(std::move(scheduler));
}

/// Any schedule with a declared unit, as a training loop takes it.
///
///     void fit(…, optim::ScheduleHandle schedule);
///     fit(…, optim::per_epoch(optim::StepLR(optimizer, {.step_size = 30})));
///     fit(…, optim::ReduceLROnPlateau(optimizer));
///
/// The loop reports every event; a schedule moves with its own unit and ignores the rest. A bare
/// LRScheduler does not compile. Copies share only the optimizer. Not thread-safe.
class ScheduleHandle final {
 public:
  ScheduleHandle(StepScheduler schedule);      // NOLINT(google-explicit-constructor)
  ScheduleHandle(EpochScheduler schedule);     // NOLINT(google-explicit-constructor)
  ScheduleHandle(ReduceLROnPlateau schedule);  // NOLINT(google-explicit-constructor)
  /// Write per_step(…) or per_epoch(…).
  ScheduleHandle(const LRScheduler& schedule) = delete;  // NOLINT(google-explicit-constructor)
  /// Says in a sentence that a schedule is not one of Argosy's.
  template <typename Other>
  requires(detail::kHasStep<Other> && !std::derived_from<std::remove_cvref_t<Other>, LRScheduler>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      ScheduleHandle(Other&&)
      : schedule_(std::declval<StepScheduler>()) {
    static_assert(std::derived_from<std::remove_cvref_t<Other>, LRScheduler>,
                  "a schedule is one of argosy::optim, which have libtorch's names and numbers; "
                  "torch::optim's belong to a loop of your own: see docs/reference/libtorch.md");
  }

  [[nodiscard]] ScheduleUnit unit() const noexcept;
  /// An update was made.
  void on_step();
  /// An epoch has ended.
  void on_epoch_end();
  /// An evaluation has ended with this result, which must be equal on all ranks.
  void on_metric(double metric);

  /// The rate that the schedule set for the first group.
  [[nodiscard]] double last_lr() const;
  /// See LRScheduler.
  [[nodiscard]] std::string parameters() const;
  [[nodiscard]] LRSchedulerState state_dict() const;
  /// Errors: CheckpointError for a state of another schedule, unit or number of groups.
  void load_state_dict(const LRSchedulerState& state);

 private:
  std::variant<StepScheduler, EpochScheduler, ReduceLROnPlateau> schedule_;
};

}  // namespace argosy::optim
