#include "argosy/recipes/schedules.h"

#include <algorithm>
#include <utility>

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

using optim::LRScheduler;
using optim::Optimizer;

const OptionRow kGamma{"gamma", "0.1", "factor of each fall"};
OptionRow unit(std::string fallback) {
  return {"unit", std::move(fallback), "what it counts: step (an update) or epoch"};
}

int64_t whole_or(const Values& values, std::string_view name, int64_t otherwise) {
  return values.is_auto(name) ? otherwise : values.whole(name);
}

ScheduleEntry step() {
  return {.row = {"step",
                  "a fall after every step_size",
                  {{"step_size", "30", "between two falls"}, kGamma, unit("epoch")}},
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            return optim::StepLR(
                optimizer,
                {.step_size = values.whole("step_size"), .gamma = values.number("gamma")});
          }};
}

ScheduleEntry multistep() {
  return {
      .row = {"multistep",
              "a fall at each milestone",
              {{"milestones", "auto", "30/60; auto: at a half and three quarters"},
               kGamma,
               unit("epoch")}},
      .length_option = "milestones",
      .build = [](const Optimizer& optimizer, int64_t length, const Values& values) -> LRScheduler {
        const std::vector<int64_t> halves{std::max<int64_t>(1, length / 2),
                                          std::max<int64_t>(1, length * 3 / 4)};
        return optim::MultiStepLR(
            optimizer,
            {.milestones = values.is_auto("milestones") ? halves : values.wholes("milestones"),
             .gamma = values.number("gamma")});
      }};
}

ScheduleEntry exponential() {
  return {.row = {"exponential",
                  "times gamma, again and again",
                  {{"gamma", "0.9", "factor"}, unit("epoch")}},
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            return optim::ExponentialLR(optimizer, {.gamma = values.number("gamma")});
          }};
}

ScheduleEntry cosine() {
  return {
      .row = {"cosine",
              "half a cosine down to eta_min",
              {{"t_max", "auto", "its length; auto: the training's"},
               {"eta_min", "0", "the last rate"},
               unit("step")}},
      .length_option = "t_max",
      .build = [](const Optimizer& optimizer, int64_t length, const Values& values) -> LRScheduler {
        return optim::CosineAnnealingLR(
            optimizer,
            {.t_max = whole_or(values, "t_max", length), .eta_min = values.number("eta_min")});
      }};
}

ScheduleEntry restarts() {
  return {.row = {"cosine_restarts",
                  "half cosines, one after another",
                  {{"t_0", "10", "length of the first"},
                   {"t_mult", "1", "how many times as long each next one is"},
                   {"eta_min", "0", "where they end"},
                   unit("epoch")}},
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            return optim::CosineAnnealingWarmRestarts(optimizer,
                                                      {.t_0 = values.whole("t_0"),
                                                       .t_mult = values.whole("t_mult"),
                                                       .eta_min = values.number("eta_min")});
          }};
}

ScheduleEntry linear() {
  return {
      .row = {"linear",
              "a straight line from one factor to another",
              {{"start_factor", "1", "of the rate, at the beginning"},
               {"end_factor", "0", "at the end"},
               {"total_iters", "auto", "its length; auto: the training's"},
               unit("step")}},
      .length_option = "total_iters",
      .build = [](const Optimizer& optimizer, int64_t length, const Values& values) -> LRScheduler {
        return optim::LinearLR(optimizer,
                               {.start_factor = values.number("start_factor"),
                                .end_factor = values.number("end_factor"),
                                .total_iters = whole_or(values, "total_iters", length)});
      }};
}

ScheduleEntry polynomial() {
  return {
      .row = {"polynomial",
              "a power of a straight line down to end_lr",
              {{"power", "1", "of the line"},
               {"end_lr", "0", "the last rate"},
               {"total_iters", "auto", "its length; auto: the training's"},
               {"cycle", "no", "rises again behind its end"},
               unit("step")}},
      .length_option = "total_iters",
      .build = [](const Optimizer& optimizer, int64_t length, const Values& values) -> LRScheduler {
        return optim::PolynomialLR(optimizer,
                                   {.total_iters = whole_or(values, "total_iters", length),
                                    .power = values.number("power"),
                                    .end_lr = values.number("end_lr"),
                                    .cycle = values.flag("cycle")});
      }};
}

ScheduleEntry one_cycle() {
  return {
      .row = {"onecycle",
              "one rise to the rate and one fall",
              {{"pct_start", "0.3", "part in which it rises"},
               {"anneal", "cos", "its way: cos, linear"},
               {"div_factor", "25", "the first rate is lr / div_factor"},
               {"final_div_factor", "1e4", "the last is the first / final_div_factor"},
               {"three_phase", "no", "falls as it rose, then to the last rate"},
               {"total_steps", "auto", "its length; auto: the training's"},
               unit("step")}},
      .own_rates = true,
      .length_option = "total_steps",
      .build = [](const Optimizer& optimizer, int64_t length, const Values& values) -> LRScheduler {
        return optim::OneCycleLR(
            optimizer,
            {.max_lr = optimizer.lr(),
             .total_steps = whole_or(values, "total_steps", length),
             .pct_start = values.number("pct_start"),
             .anneal_strategy = values.word("anneal", {"cos", "linear"}) == "cos"
                                    ? optim::AnnealStrategy::kCos
                                    : optim::AnnealStrategy::kLinear,
             .div_factor = values.number("div_factor"),
             .final_div_factor = values.number("final_div_factor"),
             .three_phase = values.flag("three_phase")});
      }};
}

optim::CyclicMode cyclic_mode(const Values& values) {
  const std::string& mode = values.word("mode", {"triangular", "triangular2", "exp_range"});
  return mode == "triangular"    ? optim::CyclicMode::kTriangular
         : mode == "triangular2" ? optim::CyclicMode::kTriangular2
                                 : optim::CyclicMode::kExpRange;
}

ScheduleEntry cyclic() {
  return {.row = {"cyclic",
                  "straight lines up to the rate and down again",
                  {{"base_lr", "auto", "lowest rate; auto: a tenth of the highest"},
                   {"step_size_up", "2000", "length of a rise"},
                   {"step_size_down", "auto", "of a fall; auto: the same"},
                   {"mode", "triangular", "triangular, triangular2 (halved), exp_range"},
                   {"gamma", "1", "of exp_range"},
                   unit("step")}},
          .own_rates = true,
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            const double highest = optimizer.lr();
            const int64_t up = values.whole("step_size_up");
            return optim::CyclicLR(
                optimizer,
                {.base_lr = values.is_auto("base_lr") ? highest / 10 : values.number("base_lr"),
                 .max_lr = highest,
                 .step_size_up = up,
                 .step_size_down = whole_or(values, "step_size_down", up),
                 .mode = cyclic_mode(values),
                 .gamma = values.number("gamma")});
          }};
}

ScheduleEntry noam() {
  return {.row = {"noam",
                  "rises, then falls with the root: of the transformer",
                  {{"d_model", "512", "width of the model"},
                   {"warmup_steps", "4000", "of the rise"},
                   unit("step")}},
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            return optim::NoamDecay(
                optimizer,
                {.d_model = values.whole("d_model"), .warmup_steps = values.whole("warmup_steps")});
          }};
}

ScheduleEntry piecewise() {
  return {.row = {"piecewise",
                  "rates of its own between boundaries",
                  {{"boundaries", "", "30/60"}, {"values", "", "0.1/0.01/0.001"}, unit("epoch")}},
          .own_rates = true,
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            return optim::PiecewiseDecay(
                optimizer,
                {.boundaries = values.wholes("boundaries"), .values = values.numbers("values")});
          }};
}

template <typename Decay>
ScheduleEntry rate_decay(std::string name, std::string what) {
  return {.row = {std::move(name), std::move(what), {{"gamma", "0.1", "how fast"}, unit("epoch")}},
          .build = [](const Optimizer& optimizer, int64_t, const Values& values) -> LRScheduler {
            return Decay(optimizer, {.gamma = values.number("gamma")});
          }};
}

ScheduleEntry plateau() {
  return {.row = {"plateau",
                  "a fall when the evaluation's loss gets no better",
                  {{"factor", "0.1", "of each fall"},
                   {"patience", "10", "evaluations that are put up with"},
                   {"threshold", "1e-4", "by which part it must get better"},
                   {"cooldown", "0", "evaluations after a fall that do not count"},
                   {"min_lr", "0", "the lowest rate"}}},
          .own_rates = true};
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

const std::vector<ScheduleEntry>& schedules() {
  static const std::vector<ScheduleEntry> all{
      {.row = {"constant", "the same rate from beginning to end", {}}},
      step(),
      multistep(),
      exponential(),
      cosine(),
      restarts(),
      linear(),
      polynomial(),
      one_cycle(),
      cyclic(),
      noam(),
      piecewise(),
      rate_decay<optim::NaturalExpDecay>("natural_exp", "exp(-gamma t)"),
      rate_decay<optim::InverseTimeDecay>("inverse_time", "1 / (1 + gamma t)"),
      plateau()};
  return all;
}

}  // namespace argosy::recipes
