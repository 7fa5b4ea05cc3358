#include "argosy/parallel/ddp/bucket_set.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/layout.h"
#include "argosy/engine/parts.h"
#include "argosy/optim/sharded_step.h"
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

BucketSet::BucketSet(const ParameterTable& table,
                     const comm::Group& group,
                     const DdpOptions& options,
                     BucketPlan plan,
                     std::shared_ptr<sharded::MemoryPool> pool)
    : table_(table), group_(group), options_(options), pool_(std::move(pool)), rebuilt_(true) {
  use(std::move(plan));
}

BucketPlan BucketSet::planned(const std::vector<size_t>& order) const {
  return plan_buckets(
      table_.tensors(),
      order,
      {.first_bytes = options_.first_bucket_bytes, .bytes = options_.bucket_cap_bytes});
}

void BucketSet::use(BucketPlan plan) {
  if (is_cut()) {
    pool_->free_spare();
  }
  const std::shared_ptr<SharedPart> part =
      options_.shared_memory && !is_cut()
          ? SharedPart::create(aligned_bytes(table_.tensors()), group_, options_.timeout)
          : nullptr;
  const Allocate allocate = is_cut()          ? sharded::in_pool(pool_)
                            : part != nullptr ? part->allocate()
                                              : ordinary_memory();
  buckets_ = make_buckets(plan, table_.tensors(), allocate, is_cut() ? group_.size() : 1);
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
  ARGOSY_CHECK(
      grad.layout() == at::kStrided,
      "parallel.ddp",
      "parameter {} has a sparse gradient, which only torch::nn::Embedding and EmbeddingBag "
      "with .sparse(true) may have, built so before the model is wrapped. Build it with "
      ".sparse(false).",
      table_.name(parameter));
  ARGOSY_CHECK(grad.sizes() == view.sizes(),
               "parallel.ddp",
               "the gradient of parameter {} was replaced by one of another shape: expected {}, "
               "got {}",
               table_.name(parameter),
               text::shape(view.sizes()),
               text::shape(grad.sizes()));
  open(parameter);
  view.copy_(grad);
  grad = view;
  ++copied_;
  return true;
}

void BucketSet::open(size_t parameter) {
  const Bucket& bucket = buckets_[places_[parameter].bucket];
  if (!is_cut() || !bucket.memory->make_room()) {
    return;
  }
  for (size_t slot = 0; slot < bucket.views.size(); ++slot) {  // the gaps
    const int64_t end = bucket.views[slot].storage_offset() + bucket.views[slot].numel();
    const int64_t next = slot + 1 < bucket.views.size() ? bucket.views[slot + 1].storage_offset()
                                                        : bucket.flat.numel();
    bucket.flat.narrow(0, end, next - end).zero_();
  }
}

at::Tensor BucketSet::whole(size_t bucket) const {
  const Bucket& asked = buckets_[bucket];
  return is_cut() ? asked.memory->whole() : asked.flat;
}

void BucketSet::hold_gradients() {
  std::vector<std::shared_ptr<sharded::ShardedMemory>> memories;
  for (const Bucket& bucket : buckets_) {
    const auto is_here = [&](size_t parameter) {
      const at::Tensor& grad = table_.tensors()[parameter].grad();
      return grad.defined() && same_memory(grad, view_of(parameter));
    };
    if (bucket.memory != nullptr && std::ranges::any_of(bucket.parameters, is_here)) {
      memories.push_back(bucket.memory);
    }
  }
  if (!memories.empty()) {
    pool_->hold(memories);
  }
}

at::Tensor BucketSet::kept_part(size_t parameter) const {
  const at::Tensor& view = view_of(parameter);
  return is_cut() ? buckets_[places_[parameter].bucket].memory->part_of(view) : view;
}

at::Tensor BucketSet::kept_part_of(size_t parameter, const at::Tensor& like) const {
  if (!is_cut()) {
    return like;
  }
  const at::Tensor& view = view_of(parameter);
  const at::Tensor ordered =
      engine::same_storage_order(view, like)
          ? like
          : at::empty_strided(view.sizes(), view.strides(), view.options()).copy_(like);
  return engine::elements_of(ordered, buckets_[places_[parameter].bucket].memory->range_of(view));
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
  hold_gradients();
  use(std::move(plan));
  return true;
}

void BucketSet::cut(const std::shared_ptr<sharded::MemoryPool>& pool) {
  const at::NoGradGuard no_grad;
  hold_gradients();
  pool_ = pool;
  use(BucketPlan(plan_));
}

void BucketSet::follow_layout() {
  const at::NoGradGuard no_grad;
  std::vector<uint8_t> inside(table_.size());  // under no_sync, before the first averaged pass
  for (size_t i = 0; i < table_.size(); ++i) {
    const at::Tensor& grad = table_.tensors()[i].grad();
    inside[i] = grad.defined() && same_memory(grad, view_of(i)) ? 1 : 0;
  }
  hold_gradients();
  for (Bucket& bucket : buckets_) {
    if (bucket.memory != nullptr) {
      (void)bucket.memory->make_room();  // without gradients in it, of no certain values
      bucket.memory->note_write();
    }
    ddp::follow_layout(bucket, table_.tensors());
    if (bucket.memory != nullptr) {
      bucket.memory->keep();
    }
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
