#include "argosy/parallel/ddp/sharded_buckets.h"

#include <algorithm>
#include <exception>
#include <span>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/work.h"

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

}  // namespace

ShardedBuckets::ShardedBuckets(engine::NamedTensors parameters,
                               const BucketPlan& plan,
                               const comm::Group& group,
                               std::chrono::milliseconds timeout)
    : parameters_(std::move(parameters)), group_(group), timeout_(timeout) {
  follow(plan);
}

void ShardedBuckets::follow(const BucketPlan& plan) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : parameters_) {
    tensors.push_back(tensor);
  }
  values_ = make_buckets(plan, tensors, ordinary_memory(), group_.size());
  places_.clear();
  for (std::size_t b = 0; b < values_.size(); ++b) {
    const Bucket& bucket = values_[b];
    for (std::size_t slot = 0; slot < bucket.parameters.size(); ++slot) {
      const std::size_t index = bucket.parameters[slot];
      const at::Tensor& view = bucket.views[slot];
      view.copy_(tensors[index]);
      tensors[index].set_data(with_storage(view));
      places_[view.data_ptr()] = {.parameter = index,
                                  .bucket = b,
                                  .slot = slot,
                                  .offset = view.storage_offset() - bucket.flat.storage_offset()};
    }
  }
}

void ShardedBuckets::follow_layout() {
  for (const auto& [data, place] : places_) {
    Bucket& bucket = values_[place.bucket];
    bucket.views[place.slot] =
        view_in(bucket.flat, place.offset, parameters_[place.parameter].second);
  }
}

void ShardedBuckets::leave() noexcept {
  const at::NoGradGuard no_grad;
  try {
    for (const auto& [data, place] : places_) {
      at::Tensor parameter = parameters_[place.parameter].second;
      if (parameter.data_ptr() == data) {  // else the program has moved it
        parameter.set_data(parameter.detach().clone());
      }
    }
  } catch (const std::exception& error) {  // no memory: they stay where they are
    log::warn("[{}] a parameter stays in the memory of its bucket: {}", kShardedStep, error.what());
  }
  places_.clear();
  values_.clear();
  left_ = true;
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
  const auto found = places_.find(parameter.data_ptr());
  if (found == places_.end()) {
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

IndexRange ShardedBuckets::part_of(const at::Tensor& parameter) const {
  if (parameter.numel() == 0) {
    return {};
  }
  const Place& place = place_of(parameter);
  const int64_t share = values_[place.bucket].parts.front().numel();
  const auto within = [&](int64_t rank) {
    return std::clamp<int64_t>(rank * share - place.offset, 0, parameter.numel());
  };
  return {within(group_.rank()), within(group_.rank() + 1)};
}

void ShardedBuckets::hand_out() {
  check_there();
  std::vector<comm::Work> all;
  for (const Bucket& bucket : values_) {
    const at::Tensor& own = bucket.parts[static_cast<std::size_t>(group_.rank())];
    all.push_back(comm::all_gather_async(bucket.parts, own, group_, {.timeout = timeout_}));
  }
  for (const comm::Work& each : all) {
    each.wait();
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

void ShardedBuckets::gather(const std::vector<Shard>& shards, const Take& take) const {
  check_there();
  const at::NoGradGuard no_grad;
  for (std::size_t b = 0; b < values_.size(); ++b) {
    const at::Tensor& own = values_[b].parts[static_cast<std::size_t>(group_.rank())];
    const int64_t share = own.numel();
    const at::Tensor mine = at::zeros_like(own);
    std::vector<std::size_t> here;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const auto& [parameter, part] = shards[i];
      if (parameter.numel() == 0 || place_of(parameter).bucket != b) {
        continue;
      }
      here.push_back(i);
      const int64_t first =
          place_of(parameter).offset + part_of(parameter).begin - group_.rank() * share;
      if (part.numel() > 0) {
        mine.narrow(0, first, part.numel()).copy_(part);
      }
    }
    if (here.empty()) {
      continue;
    }
    const at::Tensor whole = at::empty({share * group_.size()}, mine.options());
    comm::all_gather(whole.chunk(group_.size()), mine, group_, {.timeout = timeout_});
    for (const std::size_t i : here) {
      const Place& place = place_of(shards[i].parameter);
      take(i, view_in(whole, place.offset, values_[b].views[place.slot]));
    }
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].parameter.numel() == 0) {
      take(i, at::empty_like(shards[i].parameter));
    }
  }
}

}  // namespace argosy::parallel::ddp
