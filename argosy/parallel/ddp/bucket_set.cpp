#include "argosy/parallel/ddp/bucket_set.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/comm/collectives.h"
#include "argosy/parallel/ddp/shared_part.h"

namespace argosy::parallel::ddp {

BucketSet::BucketSet(const ParameterTable& table,
                     const comm::Group& group,
                     const DdpOptions& options)
    : table_(table), group_(group), options_(options) {
  std::vector<size_t> order(table.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});  // backward meets the last layers first
  use(planned(order));
  arrival_.reserve(table.size());
}

BucketPlan BucketSet::planned(const std::vector<size_t>& order) const {
  return plan_buckets(
      table_.tensors(),
      order,
      {.first_bytes = options_.first_bucket_bytes, .bytes = options_.bucket_cap_bytes});
}

void BucketSet::use(BucketPlan plan) {
  const std::shared_ptr<SharedPart> part =
      options_.shared_memory && parts_ == 1
          ? SharedPart::create(aligned_bytes(table_.tensors()), group_, options_.timeout)
          : nullptr;
  buckets_ = make_buckets(
      plan, table_.tensors(), part != nullptr ? part->allocate() : ordinary_memory(), parts_);
  plan_ = std::move(plan);
  places_.assign(table_.size(), {});
  for (size_t b = 0; b < buckets_.size(); ++b) {
    for (size_t slot = 0; slot < buckets_[b].parameters.size(); ++slot) {
      places_[buckets_[b].parameters[slot]] = {b, slot};
    }
  }
}

std::vector<size_t> BucketSet::members() const {
  std::vector<size_t> out;
  for (const Bucket& bucket : buckets_) {
    out.push_back(bucket.parameters.size());
  }
  return out;
}

bool BucketSet::bring_in(size_t parameter) {
  at::Tensor& grad = table_.tensors()[parameter].mutable_grad();
  const at::Tensor& view = view_of(parameter);
  if (!grad.defined()) {
    return false;
  }
  if (same_memory(grad, view)) {
    return true;
  }
  ARGOSY_CHECK(grad.layout() == at::kStrided,
               "parallel.ddp",
               "parameter {} has a sparse gradient, which cannot be averaged. Build the embedding "
               "with .sparse(false).",
               table_.name(parameter));
  ARGOSY_CHECK(grad.sizes() == view.sizes(),
               "parallel.ddp",
               "the gradient of parameter {} was replaced by one of another shape: expected {}, "
               "got {}",
               table_.name(parameter),
               text::shape(view.sizes()),
               text::shape(grad.sizes()));
  view.copy_(grad);
  grad = view;
  ++copied_;
  return true;
}

bool BucketSet::rebuild(int root) {
  const at::NoGradGuard no_grad;
  const at::Tensor order = at::empty({static_cast<int64_t>(table_.size())}, at::kLong);
  if (group_.rank() == root) {
    std::vector<int64_t> mine = arrival_;
    if (mine.size() != table_.size()) {  // it only shadowed the others' passes so far, in a join
      mine.clear();
      for (const std::vector<size_t>& bucket : plan_) {
        mine.insert(mine.end(), bucket.begin(), bucket.end());
      }
    }
    ARGOSY_INVARIANT(mine.size() == table_.size(), "parallel.ddp.rebuild");
    std::copy(mine.begin(), mine.end(), order.data_ptr<int64_t>());
  }
  comm::broadcast(order, group_, {.root = root, .timeout = options_.timeout});
  rebuilt_ = true;
  const int64_t* indices = order.data_ptr<int64_t>();
  BucketPlan plan = planned({indices, indices + order.numel()});
  if (plan == plan_) {
    return false;
  }
  use(std::move(plan));
  return true;
}

void BucketSet::cut(int parts) {
  const at::NoGradGuard no_grad;
  parts_ = parts;
  use(BucketPlan(plan_));
}

void BucketSet::follow_layout() {
  const at::NoGradGuard no_grad;
  std::vector<uint8_t> inside(table_.size());  // under no_sync, before the first averaged pass
  for (size_t i = 0; i < table_.size(); ++i) {
    const at::Tensor& grad = table_.tensors()[i].grad();
    inside[i] = grad.defined() && same_memory(grad, view_of(i)) ? 1 : 0;
  }
  for (Bucket& bucket : buckets_) {
    ddp::follow_layout(bucket, table_.tensors());
  }
  for (size_t i = 0; i < table_.size(); ++i) {
    if (inside[i] != 0) {
      table_.tensors()[i].mutable_grad() = view_of(i);
    }
  }
}

void BucketSet::fill(DdpStats& stats) const {
  stats.buckets.clear();
  for (const Bucket& bucket : buckets_) {
    DdpBucketStats one{.bytes = static_cast<int64_t>(bucket.flat.nbytes()),
                       .parameters = {},
                       .ready_at_start = bucket.ready_at_start};
    for (const size_t parameter : bucket.parameters) {
      one.parameters.push_back(table_.name(parameter));
    }
    stats.buckets.push_back(std::move(one));
  }
  stats.arrival_order.clear();
  for (const int64_t parameter : arrival_) {
    stats.arrival_order.push_back(table_.name(static_cast<size_t>(parameter)));
  }
  stats.rebuilt = rebuilt_;
  stats.copied_gradients = copied_;
}

}  // namespace argosy::parallel::ddp
