#include "argosy/parallel/ddp/divided_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/verify.h"

namespace argosy::parallel::ddp {
namespace {

constexpr std::size_t kDividedStepLine = 64;

/// Share `rank` of `ranks` in [0, bytes) begins here, at a cache line.
std::size_t share_begin(std::size_t bytes, int rank, int ranks) {
  const std::size_t lines = (bytes + kDividedStepLine - 1) / kDividedStepLine;
  return lines * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks) *
         kDividedStepLine;
}

}  // namespace

DividedStep::DividedStep(std::shared_ptr<SharedPart> values,
                         const comm::Group& group,
                         std::chrono::milliseconds timeout)
    : values_(std::move(values)), group_(group), timeout_(timeout) {}

std::shared_ptr<DividedStep> DividedStep::create(const engine::NamedTensors& parameters,
                                                 std::size_t states,
                                                 std::shared_ptr<SharedPart> values,
                                                 const comm::Group& group,
                                                 std::chrono::milliseconds timeout) {
  std::shared_ptr<DividedStep> step(new DividedStep(std::move(values), group, timeout));
  step->state_bytes_ = step->place(parameters);
  if (step->state_bytes_ == 0) {
    return nullptr;
  }
  if (states > 0) {
    step->states_ = comm::share_memory(step->state_bytes_ * states, group, {.timeout = timeout});
    if (step->states_ == nullptr) {
      return nullptr;
    }
    step->counted_states_.emplace(step->state_bytes_ * states /
                                  static_cast<std::size_t>(group.size()));
  }
  return step;
}

/// Bytes of all parameters that are divided.
std::size_t DividedStep::place(const engine::NamedTensors& parameters) {
  std::size_t total = 0;
  for (const auto& [name, parameter] : parameters) {
    if (parameter.numel() > 0 && values_->holds(parameter.data_ptr())) {
      places_[parameter.data_ptr()] = {
          .parameter = parameter, .own = parameter.data_ptr(), .offset = total};
      total += static_cast<std::size_t>(aligned_bytes(parameter));
    }
  }
  const std::size_t begin = share_begin(total, group_.rank(), group_.size());
  const std::size_t end = share_begin(total, group_.rank() + 1, group_.size());
  for (auto& entry : places_) {
    Place& each = entry.second;
    const std::size_t item = each.parameter.element_size();
    const auto clamped = [&](std::size_t bound) {
      return std::clamp(bound, each.offset, each.offset + each.parameter.nbytes()) - each.offset;
    };
    each.part = {.begin = clamped(begin) / item, .end = clamped(end) / item, .divided = true};
  }
  return total;
}

DividedStep::~DividedStep() {
  if (shared_) {
    leave();
  }
}

void DividedStep::share() {
  if (shared_) {
    return;
  }
  values_->keep_for_others();
  place_at([this](void* own) { return values_->of(0, own); }, false);
  shared_ = true;
}

void DividedStep::unshare() {
  if (!shared_) {
    return;
  }
  place_at([](void* own) { return own; }, true);
  shared_ = false;
}

/// Moves every parameter; `with_values`: and what it holds, else it takes what is there.
void DividedStep::place_at(const std::function<void*(void* own)>& where, bool with_values) {
  const at::NoGradGuard no_grad;
  std::unordered_map<const void*, Place> places;
  for (auto& [data, each] : places_) {
    if (each.parameter.data_ptr() != data) {
      continue;  // the program has given it other memory: it is divided no longer
    }
    void* const there = where(each.own);
    const at::Tensor flat = at::from_blob(
        there,
        {each.parameter.numel()},
        [keep = values_](void* /*data*/) {},
        each.parameter.options().requires_grad(false));
    const at::Tensor place = view_in(flat, 0, each.parameter);
    if (with_values && there != data) {
      place.copy_(each.parameter);
    }
    each.parameter.set_data(place);
    places[there] = each;
  }
  places_ = std::move(places);
}

const DividedStep::Place* DividedStep::find(const at::Tensor& parameter) const {
  const auto found = parameter.numel() > 0 ? places_.find(parameter.data_ptr()) : places_.end();
  return found == places_.end() ? nullptr : &found->second;
}

optim::StepDivision::Part DividedStep::part_of(const at::Tensor& parameter) const {
  const Place* const place = find(parameter);
  return place != nullptr ? place->part
                          : Part{.begin = 0, .end = static_cast<std::size_t>(parameter.numel())};
}

at::Tensor DividedStep::state_of(const at::Tensor& parameter, std::size_t index) const {
  const Place* const place = find(parameter);
  ARGOSY_INVARIANT(place != nullptr && states_ != nullptr, "parallel.divided_step");
  std::byte* const data = states_->bytes().data() + index * state_bytes_ + place->offset;
  const at::Tensor flat = at::from_blob(
      data,
      {parameter.numel()},
      [keep = states_](void* /*data*/) {},
      parameter.options().requires_grad(false));
  return view_in(flat, 0, parameter);
}

void DividedStep::begin(uint64_t digest, const InWords& in_words) {
  const auto mine = static_cast<int64_t>(digest);
  // Their maxima are the largest digest and, inverted, the smallest.
  const at::Tensor bounds = at::tensor({mine, ~mine}, at::kLong);
  ++steps_;
  or_leave([&] {
    comm::all_reduce(
        bounds,
        group_,
        {.op = comm::ReduceOp::kMax, .timeout = timeout_, .place = {.update = steps_}});
  });
  if (bounds[0].item<int64_t>() != ~bounds[1].item<int64_t>()) {
    throw_another_step(in_words);
  }
}

/// Collective.
void DividedStep::throw_another_step(const InWords& in_words) {
  Signature mine;
  for (const auto& [name, value] : in_words()) {
    mine.lines.push_back({name, value});
  }
  const Subject subject{
      .where = "parallel.divided_step",
      .what = fmt::format("step {} of an optimizer that is divided differs", steps_),
      .advice =
          "Give all ranks the same options and average gradients before step(), or let ranks "
          "differ with .divide_update = false in the strategy."};
  or_leave([&] { verify_equal(mine, group_, timeout_, subject); });
  throw UsageError("parallel.divided_step",
                   fmt::format("{} between ranks. {}", subject.what, subject.advice));
}

void DividedStep::hand_out(const void* data, std::size_t bytes) const noexcept {
  if (shared_) {
    return;
  }
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank != group_.rank()) {
      std::memcpy(values_->of(rank, data), data, bytes);
    }
  }
}

void DividedStep::end() {
  or_leave([&] { comm::barrier(group_, {.timeout = timeout_}); });
}

/// When a rank is lost the group is, and every later step fails; but the others may be in the
/// middle of this one and still write to where the parameters lie.
template <typename Collective>
void DividedStep::or_leave(Collective collective) {
  try {
    collective();
  } catch (const UsageError&) {
    throw;  // all ranks have it, before they have written anything
  } catch (...) {
    leave();
    throw;
  }
}

void DividedStep::leave() noexcept {
  for (auto& [data, each] : places_) {
    if (each.parameter.data_ptr() != data) {
      continue;  // it has left already: the module was wrapped again
    }
    try {
      values_->take_out(each.parameter, each.own);
    } catch (const std::exception& error) {  // no memory: the first error is the one to tell
      log::warn("[parallel.divided_step] a parameter stays in shared memory: {}", error.what());
    }
  }
  places_.clear();
  shared_ = false;
}

}  // namespace argosy::parallel::ddp
