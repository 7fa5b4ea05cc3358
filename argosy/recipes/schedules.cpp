#include "argosy/recipes/schedules.h"

#include <algorithm>

#include "argosy/base/check.h"
#include "argosy/optim/optim.h"

namespace argosy::recipes {
namespace {

using optim::LRScheduler;
using optim::Optimizer;

optim::ReduceLROnPlateau make_plateau(const Optimizer& optimizer, const Values& values) {
  return optim::ReduceLROnPlateau(optimizer,
                                  {.factor = values.number("factor"),
                                   .patience = values.whole("patience"),
                                   .threshold = values.number("threshold"),
                                   .cooldown = values.whole("cooldown"),
                                   .min_lr = values.number("min_lr")});
}

/// A schedule of epochs, counted in updates, with a warm-up in front.
LRScheduler after_warmup(const Optimizer& optimizer,
                         const LRScheduler& inner,
                         int64_t stride,
                         int64_t warmup) {
  const optim::LRSchedule schedule = inner.schedule();
  const int64_t before = stride == 1 ? 0 : warmup;  // epochs are counted from the very beginning
  return optim::LinearWarmup(LRScheduler(optimizer,
                                         [schedule, stride, before](int64_t step, double base) {
                                           return schedule((step + before) / stride, base);
                                         }),
                             {.warmup_steps = warmup});
}

}  // namespace

bool depends_on_length(const std::string& text) {
  const Spec spec = parse_spec(kSchedules, text);
  const ScheduleEntry& entry = find_entry(kSchedules, schedules(), spec.name);
  return !entry.length_option.empty() &&
         Values(kSchedules, entry.row, spec.options).is_auto(entry.length_option);
}

std::optional<optim::ScheduleHandle> make_schedule(const std::string& text,
                                                   const optim::Optimizer& optimizer,
                                                   const Lengths& lengths) {
  const Spec spec = parse_spec(kSchedules, text);
  const ScheduleEntry& entry = find_entry(kSchedules, schedules(), spec.name);
  const Values values(kSchedules, entry.row, spec.options);
  ARGOSY_CHECK(lengths.warmup >= 0 && (lengths.warmup == 0 || !entry.own_rates),
               kSchedules.where,
               "--warmup {}: {} takes no warm-up before it",
               lengths.warmup,
               spec.name);
  if (spec.name == "plateau") {
    return make_plateau(optimizer, values);
  }
  if (!entry.build) {
    if (lengths.warmup == 0) {
      return std::nullopt;
    }
    return optim::per_step(optim::LinearWarmup(optimizer, {.warmup_steps = lengths.warmup}));
  }
  const bool epochs = values.word("unit", {"step", "epoch"}) == "epoch";
  const int64_t length =
      epochs ? lengths.epochs : std::max<int64_t>(1, lengths.updates() - lengths.warmup);
  // Made by itself it sets the optimizer's rate, from which the warm-up would then start.
  const double base = optimizer.lr();
  const LRScheduler inner = entry.build(optimizer, length, values);
  if (lengths.warmup == 0) {
    return epochs ? optim::ScheduleHandle(optim::per_epoch(inner))
                  : optim::ScheduleHandle(optim::per_step(inner));
  }
  Optimizer again = optimizer;
  again.set_lr(base);
  return optim::per_step(
      after_warmup(again, inner, epochs ? lengths.updates_per_epoch : 1, lengths.warmup));
}

}  // namespace argosy::recipes
