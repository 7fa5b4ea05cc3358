#include "argosy/parallel/ddp/sharded_buckets.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/work.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/parts.h"

namespace argosy::parallel::ddp {
namespace {

constexpr const char* kShardedStep = "parallel.sharded_step";

/// The same elements as the only tensor of its storage: whoever asks whether a parameter shares its
/// memory (memory formats, wrappers) means another tensor of the program.
at::Tensor with_storage(const at::Tensor& view) {
  return at::from_blob(
      view.data_ptr(),
      view.sizes(),
      view.strides(),
      [view](void* /*data*/) {},
      view.options(),
      view.device());
}

/// Whether a parameter is where it was put.
bool has_memory_of(const at::Tensor& parameter, const at::Tensor& view) {
  return sharded::ShardedMemory::of(view) != nullptr
             ? parameter.is_alias_of(view) && parameter.storage_offset() == view.storage_offset()
             : parameter.data_ptr() == view.data_ptr();
}

}  // namespace

ShardedBuckets::ShardedBuckets(engine::NamedTensors parameters,
                               const BucketPlan& plan,
                               const comm::Group& group,
                               std::chrono::milliseconds timeout,
                               Homes homes)
    : parameters_(std::move(parameters)),
      group_(group),
      timeout_(timeout),
      homes_(std::move(homes)) {
  follow(plan);
}

void ShardedBuckets::follow(const BucketPlan& plan) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters_) {
    tensors.push_back(tensor);
  }
  values_ = make_buckets(plan,
                         tensors,
                         homes_.pool != nullptr ? sharded::in_pool(homes_.pool) : ordinary_memory(),
                         group_.size());
  places_.clear();
  for (std::size_t b = 0; b < values_.size(); ++b) {
    const Bucket& bucket = values_[b];
    for (std::size_t slot = 0; slot < bucket.parameters.size(); ++slot) {
      const at::Tensor& view = bucket.views[slot];
      settle_in(bucket.parameters[slot],
                view,
                {.parameter = bucket.parameters[slot],
                 .bucket = b,
                 .slot = slot,
                 .offset = view.storage_offset() - bucket.flat.storage_offset()});
    }
  }
}

/// Moves a parameter to its place.
void ShardedBuckets::settle_in(std::size_t index, const at::Tensor& view, const Place& place) {
  const at::DisableRecordFunctionGuard unseen;  // not a use of the parameter
  at::Tensor parameter = parameters_[index].second;
  if (const auto& memory = values_[place.bucket].memory; memory != nullptr) {
    const IndexRange range = memory->range_of(view);
    if (homes_.initialize != nullptr) {
      homes_.initialize(parameters_[index].first, memory->part_of(view), range);
    } else if (engine::is_deferred(parameter) && parameter.is_contiguous()) {
      engine::draw_part(parameter, memory->part_of(view), range);
    } else {
      engine::bring_memory(parameter);
      const at::Tensor whole = at::empty_strided(view.sizes(), view.strides(), parameter.options());
      memory->part_of(view).copy_(engine::elements_of(whole.copy_(parameter), range));
    }
    parameter.set_data(view);
  } else {
    view.copy_(parameter);
    parameter.set_data(with_storage(view));
  }
  places_[parameter.unsafeGetTensorImpl()] = place;
}

void ShardedBuckets::follow_layout() {
  for (const auto& [parameter, place] : places_) {
    Bucket& bucket = values_[place.bucket];
    bucket.views[place.slot] =
        view_in(bucket.flat, place.offset, parameters_[place.parameter].second);
  }
}

void ShardedBuckets::leave() noexcept {
  const at::NoGradGuard no_grad;
  try {
    for (const auto& [impl, place] : places_) {
      at::Tensor parameter = parameters_[place.parameter].second;
      if (homes_.pool == nullptr &&
          parameter.data_ptr() == values_[place.bucket].views[place.slot].data_ptr()) {
        parameter.set_data(parameter.detach().clone());  // else the program has moved it
      }
    }
  } catch (const std::exception& error) {  // no memory: they stay where they are
    log::warn("[{}] a parameter stays in the memory of its bucket: {}", kShardedStep, error.what());
  }
  places_.clear();
  values_.clear();
  left_ = true;
}

void ShardedBuckets::hold(bool whole) {
  std::vector<std::shared_ptr<sharded::ShardedMemory>> memories;
  for (const Bucket& bucket : values_) {
    if (bucket.memory != nullptr) {
      memories.push_back(bucket.memory);
    }
  }
  if (!memories.empty()) {
    whole ? homes_.pool->hold(memories) : homes_.pool->release(memories);
  }
}

void ShardedBuckets::check_there() const {
  ARGOSY_CHECK(!left_,
               kShardedStep,
               "the model that gave this optimizer its part of the gradients and of its state is "
               "gone, or has another optimizer. Make a new one, and load its state from a "
               "checkpoint");
}

const ShardedBuckets::Place& ShardedBuckets::place_of(const at::Tensor& parameter) const {
  check_there();
  const auto found = places_.find(parameter.unsafeGetTensorImpl());
  if (found == places_.end() ||
      !has_memory_of(parameter, values_[found->second.bucket].views[found->second.slot])) {
    const auto named = std::ranges::find_if(
        parameters_, [&](const auto& each) { return each.second.is_same(parameter); });
    throw UsageError(kShardedStep,
                     fmt::format("parameter {} has been given other memory since its steps were "
                                 "divided (to(), set_data()). Move the model before "
                                 "distributed_model().",
                                 named == parameters_.end() ? "?" : named->first));
  }
  return found->second;
}

int64_t ShardedBuckets::piece_size(std::size_t bucket) const {
  return values_[bucket].flat.numel() / group_.size();
}

int64_t ShardedBuckets::piece_of(int rank) const {
  return homes_.pieces.empty() ? rank : homes_.pieces[static_cast<std::size_t>(rank)];
}

IndexRange ShardedBuckets::part_of(const at::Tensor& parameter) const {
  return part_of_rank(parameter, group_.rank());
}

IndexRange ShardedBuckets::part_of_rank(const at::Tensor& parameter, int rank) const {
  if (parameter.numel() == 0) {
    return {};
  }
  const Place& place = place_of(parameter);
  const auto within = [&](int64_t piece) {
    return std::clamp<int64_t>(
        piece * piece_size(place.bucket) - place.offset, 0, parameter.numel());
  };
  return {within(piece_of(rank)), within(piece_of(rank) + 1)};
}

at::Tensor ShardedBuckets::values_of(const at::Tensor& parameter, bool to_write) const {
  const IndexRange part = part_of(parameter);
  const auto memory = sharded::ShardedMemory::of(parameter);
  if (memory == nullptr) {
    return engine::elements_of(parameter.detach(), part);
  }
  const at::Tensor kept =  // the piece is in it
      to_write ? memory->part_to_write(parameter) : memory->part_of(parameter);
  const int64_t first = part.size() == 0 ? 0 : part.begin - memory->range_of(parameter).begin;
  return kept.narrow(0, first, part.size());
}

at::Tensor ShardedBuckets::gradient_of(const at::Tensor& parameter) const {
  const at::Tensor& grad = parameter.grad();
  if (const auto memory = sharded::ShardedMemory::of(grad)) {
    memory->check();  // who read or changed gradients may have got none
    return memory->part_to_write(grad);
  }
  const at::Tensor ordered =
      engine::same_storage_order(parameter, grad) && !grad.is_neg()
          ? grad.detach()
          : at::empty_strided(parameter.sizes(), parameter.strides(), grad.options()).copy_(grad);
  return engine::elements_of(ordered, part_of(parameter)).to(type_of_parts(parameter));
}

/// Of values, gradients and states.
at::ScalarType ShardedBuckets::type_of_parts(const at::Tensor& parameter) const {
  const auto memory = sharded::ShardedMemory::of(parameter);
  return memory != nullptr ? memory->part_type() : parameter.scalar_type();
}

bool ShardedBuckets::has_master(const at::Tensor& parameter) const {
  return type_of_parts(parameter) != parameter.scalar_type();
}

at::Tensor ShardedBuckets::make_state(const at::Tensor& values) const {
  return homes_.files != nullptr
             ? homes_.files->zeros(values.numel(), values.options().requires_grad(false))
             : ShardedStep::make_state(values);
}

/// What a rank has gathered is about to be out of date.
void ShardedBuckets::begin() {
  if (tell_ != nullptr) {
    tell_();
  }
  if (homes_.pool != nullptr) {
    homes_.pool->check();
    homes_.pool->begin_writes();
  }
}

void ShardedBuckets::hand_out() {
  check_there();
  const comm::Group& others = homes_.pool != nullptr ? homes_.replicas : group_;
  std::vector<comm::Work> all;
  for (const Bucket& bucket : values_) {
    const std::vector<at::Tensor> pieces =
        bucket.memory != nullptr ? bucket.memory->part().chunk(others.size()) : bucket.parts;
    const at::Tensor& own = pieces[static_cast<std::size_t>(others.rank())];
    if (others.size() > 1) {
      all.push_back(comm::all_gather_async(pieces, own, others, {.timeout = timeout_}));
    }
  }
  for (const comm::Work& each : all) {
    each.wait();
  }
  if (homes_.pool != nullptr) {
    homes_.pool->end_writes();
  }
}

void ShardedBuckets::sum(std::vector<ExactSum>& sums) const {
  check_there();
  constexpr auto kNumbers = static_cast<int64_t>(ExactSum::kNumbers);
  const at::Tensor all = at::empty({std::ssize(sums) * kNumbers}, at::kLong);
  auto* const numbers = all.data_ptr<int64_t>();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    std::ranges::copy(sums[i].numbers(), numbers + i * ExactSum::kNumbers);
  }
  comm::all_reduce(all, group_, {.timeout = timeout_});
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = ExactSum::from(std::span<const int64_t, ExactSum::kNumbers>(
        numbers + i * ExactSum::kNumbers, ExactSum::kNumbers));
  }
}

at::Tensor ShardedBuckets::gather(const at::Tensor& parameter, const at::Tensor& part) const {
  check_there();
  std::vector<IndexRange> ranges;
  for (int rank = 0; rank < group_.size(); ++rank) {
    ranges.push_back(part_of_rank(parameter, rank));
  }
  if (parameter.numel() == 0) {
    return at::empty_like(parameter.detach(), part.options());
  }
  const Place& place = place_of(parameter);  // the layout that it had when it was cut
  return sharded::gather_ranges(
      values_[place.bucket].views[place.slot], part, ranges, group_, timeout_);
}

}  // namespace argosy::parallel::ddp
