#include "argosy/parallel/ddp/unused_parameters.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/zeros.h>

#include "argosy/parallel/ddp/graph.h"

namespace argosy::parallel::ddp {

UnusedParameters::UnusedParameters(const ParameterTable& table, BucketSet& buckets, bool search)
    : table_(table), buckets_(buckets), search_(search) {
  if (search_) {
    used_.resize(table.size());
    kept_.reserve(table.size());
    used_map_ = at::zeros({static_cast<int64_t>(table.size())}, at::kByte);
  }
}

void UnusedParameters::add_forward(std::span<const at::Tensor> outputs, bool sync) {
  if (search_) {
    reachable_.resize(table_.size());
    mark_reachable(outputs, table_.tensors(), reachable_);
    open_forwards_ += sync ? 1 : 0;  // what was gathered under no_sync goes with the next pass
  }
}

void UnusedParameters::mark_used(size_t parameter) {
  if (search_) {
    used_[parameter] = 1;
  }
}

bool UnusedParameters::contribute_unused(size_t parameter) {
  if (search_ && used_[parameter] != 0 && buckets_.bring_in(parameter)) {
    return true;  // gathered under no_sync
  }
  const at::Tensor& grad = table_.tensors()[parameter].grad();
  const at::Tensor& view = buckets_.view_of(parameter);
  buckets_.open(parameter);
  if (!grad.defined()) {
    view.zero_();
    kept_.push_back({.parameter = parameter});
  } else if (same_memory(grad, view)) {
    kept_.push_back({.parameter = parameter, .gradient = buckets_.kept_part(parameter).clone()});
  } else {
    view.copy_(grad);
    kept_.push_back({.parameter = parameter});
  }
  return false;
}

void UnusedParameters::contribute_zeros(size_t parameter, bool frozen) {
  const at::Tensor& grad = table_.tensors()[parameter].grad();
  const at::Tensor& view = buckets_.view_of(parameter);
  Kept kept{.parameter = parameter, .frozen = frozen};
  if (grad.defined() && same_memory(grad, view)) {
    kept.gradient = buckets_.kept_part(parameter).clone();
  }
  kept_.push_back(std::move(kept));
  buckets_.open(parameter);
  view.zero_();
}

bool UnusedParameters::withdraw(size_t parameter) {
  return std::erase_if(kept_, [&](const Kept& each) { return each.parameter == parameter; }) > 0;
}

const at::Tensor& UnusedParameters::used_map() {
  std::copy(used_.begin(), used_.end(), used_map_.data_ptr<uint8_t>());
  return used_map_;
}

void UnusedParameters::mark_none_used() {
  std::fill(used_.begin(), used_.end(), uint8_t{0});
}

void UnusedParameters::settle() {
  names_.clear();
  for (const Kept& each : kept_) {
    const bool used_somewhere =
        !search_ || used_map_.data_ptr<uint8_t>()[static_cast<ptrdiff_t>(each.parameter)] != 0;
    if (!each.frozen && search_) {
      names_.push_back(table_.name(each.parameter));
    }
    if (used_somewhere && !each.frozen) {
      table_.tensors()[each.parameter].mutable_grad() = buckets_.view_of(each.parameter);
    } else if (each.gradient.defined()) {
      buckets_.kept_part(each.parameter).copy_(each.gradient);
    }
  }
  mark_none_used();
  end_pass();
}

void UnusedParameters::end_pass_of_leaf() {
  for (const Kept& each : kept_) {
    if (each.frozen && each.gradient.defined()) {  // its place in the bucket is the averages'
      table_.tensors()[each.parameter].mutable_grad() =
          buckets_.is_cut() ? at::Tensor() : each.gradient;
    }
  }
  end_pass();
}

void UnusedParameters::end_pass() {
  open_forwards_ = std::max<int64_t>(0, open_forwards_ - 1);
  if (open_forwards_ == 0) {
    reachable_.clear();
  }
}

}  // namespace argosy::parallel::ddp
