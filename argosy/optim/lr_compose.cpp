#include "argosy/optim/lr_compose.h"

#include <algorithm>
#include <cmath>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

constexpr const char* kSequential = "optim.SequentialLR";
constexpr const char* kChained = "optim.ChainedScheduler";

std::vector<LRSchedule> schedules(const std::vector<LRScheduler>& schedulers) {
  std::vector<LRSchedule> result;
  for (const LRScheduler& scheduler : schedulers) {
    result.push_back(scheduler.schedule());
  }
  return result;
}

LRSchedule sequence(const std::vector<LRScheduler>& schedulers, std::vector<int64_t> milestones) {
  ARGOSY_CHECK(milestones.size() + 1 == schedulers.size(),
               kSequential,
               "expected one milestone fewer than the {} schedulers, got {}",
               schedulers.size(),
               milestones.size());
  ARGOSY_CHECK(std::ranges::is_sorted(milestones) && (milestones.empty() || milestones[0] >= 0),
               kSequential,
               "milestones must be steps >= 0 in rising order");
  return [parts = schedules(schedulers), milestones = std::move(milestones)](int64_t step,
                                                                             double base) {
    const auto i =
        static_cast<std::size_t>(std::ranges::upper_bound(milestones, step) - milestones.begin());
    return parts[i](i == 0 ? step : step - milestones[i - 1], base);
  };
}

// Whether a rate is a factor times its base: seen at many steps.
bool is_factor(const LRSchedule& schedule) {
  for (int64_t step = 0; step < 4096; step += 1 + step / 16) {
    const double one = schedule(step, 1.0), three = schedule(step, 3.0);
    if (std::abs(three - 3 * one) > 1e-9 * std::abs(three)) {
      return false;
    }
  }
  return true;
}

LRSchedule chain(const std::vector<LRScheduler>& schedulers) {
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    ARGOSY_CHECK(is_factor(schedulers[i].schedule()),
                 kChained,
                 "schedulers[{}], {}: expected a rate that is a factor of its base, got one with a "
                 "bound of its own. Set eta_min or end_lr to 0.",
                 i,
                 schedulers[i].name());
  }
  return [parts = schedules(schedulers)](int64_t step, double base) {
    for (const LRSchedule& part : parts) {
      base = part(step, base);
    }
    return base;
  };
}

}  // namespace

const LRScheduler& LRScheduler::first_of(const char* where,
                                         const std::vector<LRScheduler>& schedulers) {
  ARGOSY_CHECK(!schedulers.empty(), where, "there are no schedulers");
  for (std::size_t i = 0; i < schedulers.size(); ++i) {
    ARGOSY_CHECK(schedulers[i].optimizer_.impl() == schedulers[0].optimizer_.impl(),
                 where,
                 "schedulers[{}] is of another optimizer than schedulers[0]",
                 i);
    ARGOSY_CHECK(!schedulers[i].own_base_,
                 where,
                 "schedulers[{}], {}: expected a schedule of the optimizer's rate, got one with "
                 "rates of its own. Use it alone, or under LinearWarmup.",
                 i,
                 schedulers[i].name());
  }
  return schedulers.front();
}

SequentialLR::SequentialLR(const std::vector<LRScheduler>& schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler("SequentialLR",
                  first_of(kSequential, schedulers),
                  sequence(schedulers, std::move(milestones))) {}

ChainedScheduler::ChainedScheduler(const std::vector<LRScheduler>& schedulers)
    : LRScheduler("ChainedScheduler", first_of(kChained, schedulers), chain(schedulers)) {}

}  // namespace argosy::optim
