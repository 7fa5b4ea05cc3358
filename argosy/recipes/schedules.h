#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "argosy/optim/lr_scheduler.h"
#include "argosy/optim/schedule_unit.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"

namespace argosy::recipes {

/// The length of a training. --num_iters does not change it, so a run that is cut and then resumed
/// has the rates of one that was not.
struct Lengths {
  int64_t epochs = 1;
  int64_t updates_per_epoch = 1;
  int64_t warmup = 0;  ///< updates during which the rate rises from 0 to its full value

  [[nodiscard]] int64_t updates() const { return epochs * updates_per_epoch; }
};

struct ScheduleEntry {
  TableRow row{};  ///< all except constant and plateau have the option `unit`: step or epoch
  /// It has rates of its own, so no warm-up can precede it.
  bool own_rates = false;
  /// The option that becomes the training's length if it is "auto", or nothing if there is none.
  std::string length_option{};
  /// `length` is that of the training in the schedule's unit, without the warm-up.
  std::function<optim::LRScheduler(
      const optim::Optimizer& optimizer, int64_t length, const Values& values)>
      build{};
};

/// Returns all schedules by name. constant and plateau have no build().
[[nodiscard]] const std::vector<ScheduleEntry>& schedules();

/// True if the rates depend on the length of the training. Errors: UsageError when there is no such
/// schedule or option.
[[nodiscard]] bool depends_on_length(const std::string& text);

/// Returns the schedule of a training; nullopt for a constant rate without warm-up. Sets the
/// optimizer's first rate.
/// Errors: UsageError for the options, and for a warm-up before a schedule that takes none.
[[nodiscard]] std::optional<optim::ScheduleHandle> make_schedule(const std::string& text,
                                                                 const optim::Optimizer& optimizer,
                                                                 const Lengths& lengths);

}  // namespace argosy::recipes
