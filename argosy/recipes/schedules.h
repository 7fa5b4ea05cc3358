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

/// How long a training is, whatever --num_iters cuts it to: a run that is cut, then resumed, has
/// the rates of one that was not.
struct Lengths {
  int64_t epochs = 1;
  int64_t updates_per_epoch = 1;
  int64_t warmup = 0;  ///< updates in which the rate rises from 0 to its full height

  [[nodiscard]] int64_t updates() const { return epochs * updates_per_epoch; }
};

struct ScheduleEntry {
  Row row{};  ///< all but constant and plateau have the option `unit`: step or epoch
  /// Has rates of its own, so that no warm-up can be put before it.
  bool own_rates = false;
  /// The option that is the training's length where it is "auto"; empty: there is none.
  std::string length_option{};
  /// `length`: of the training in the schedule's unit, warm-up left out.
  std::function<optim::LRScheduler(
      const optim::Optimizer& optimizer, int64_t length, const Values& values)>
      build{};
};

/// All schedules, by name. constant and plateau have no build().
[[nodiscard]] const std::vector<ScheduleEntry>& schedules();

/// Whether its rates depend on how long the training is. Errors: UsageError: no such schedule or
/// option.
[[nodiscard]] bool depends_on_length(const std::string& text);

/// The schedule of a training; none for a constant rate without warm-up. Sets the optimizer's first
/// rate. Errors: UsageError: of the options; a warm-up before a schedule that takes none.
[[nodiscard]] std::optional<optim::ScheduleHandle> make_schedule(const std::string& text,
                                                                 const optim::Optimizer& optimizer,
                                                                 const Lengths& lengths);

}  // namespace argosy::recipes
