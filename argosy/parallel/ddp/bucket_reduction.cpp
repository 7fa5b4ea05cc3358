#include "argosy/parallel/ddp/bucket_reduction.h"

#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/parallel/sharded/memory_pool.h"

namespace argosy::parallel::ddp {
namespace {

CommunicationTimes::Moment now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

BucketReduction::BucketReduction(const ParameterTable& table,
                                 BucketSet& buckets,
                                 LeafSums& leaves,
                                 const comm::Group& group,
                                 std::chrono::milliseconds timeout,
                                 bool exact)
    : table_(table),
      buckets_(buckets),
      leaves_(leaves),
      group_(group),
      timeout_(timeout),
      exact_(exact) {}

void BucketReduction::set_hook(CommHook hook, std::string name) {
  ARGOSY_CHECK(hook != nullptr, "parallel.ddp", "register_comm_hook: the hook is empty");
  ARGOSY_CHECK(hook_ == nullptr,
               "parallel.ddp",
               "register_comm_hook can be called once only; \"{}\" is registered",
               hook_name_);
  const CommHook none = std::exchange(hook_, std::move(hook));
  try {
    follow_leaves();
  } catch (...) {
    hook_ = none;
    throw;
  }
  hook_name_ = std::move(name);
}

void BucketReduction::set_hook_of_leaves(CommHook hook, std::string name) {
  const bool before = std::exchange(hook_sees_leaves_, true);
  try {
    set_hook(std::move(hook), std::move(name));
  } catch (...) {
    hook_sees_leaves_ = before;
    throw;
  }
}

void BucketReduction::follow_leaves() {
  if (hook_ != nullptr && hook_sees_leaves_) {
    leaves_.keep_whole();
    return;
  }
  if (hook_ == nullptr || leaves_.one_each()) {
    return;
  }
  const auto* ours = hook_.target<Compress>();
  ARGOSY_CHECK(ours != nullptr,
               "parallel.ddp",
               "a communication hook of your own needs as many processes as virtual ranks: here "
               "are {} processes for {} virtual ranks, and partial sums travel in f32",
               group_.size(),
               leaves_.leaves_of_all());
  leaves_.round_to(ours->type);
}

void BucketReduction::restart(const transport::TrainingPlace& place) noexcept {
  place_ = place;
  sent_.clear();
  settled_ = 0;
  others_.clear();
}

comm::AllReduceOptions BucketReduction::options(comm::ReduceOp op) const {
  return {.op = op, .timeout = timeout_, .place = place_, .exact = exact_};
}

void BucketReduction::send(size_t bucket, size_t pass, size_t ready) {
  Bucket& sent = buckets_[bucket];
  sent.ready_at_start = ready;
  if (bucket == 0) {
    begun_ = now();
  }
  if (hook_ != nullptr && (hook_sees_leaves_ || leaves_.one_each())) {
    sent_.push_back(by_hook(bucket, pass));
  } else if (!leaves_.one_each()) {
    sent_.push_back(
        leaves_.average(pass, bucket, buckets_.whole(bucket), options(comm::ReduceOp::kAvg)));
  } else if (gives_parts()) {
    sent_.push_back(scatter(bucket));
  } else {
    sent_.emplace_back(comm::all_reduce_async(sent.flat, group_, options(comm::ReduceOp::kAvg)));
  }
  if (buckets_.is_cut()) {
    settle_early();
  }
}

BucketWork BucketReduction::by_hook(size_t bucket, size_t pass) {
  Bucket& sent = buckets_[bucket];
  std::vector<at::Tensor> leaves;
  if (hook_sees_leaves_) {
    leaves = leaves_.take(pass, bucket);
  }
  if (!leaves_.is_spare()) {
    leaves.push_back(sent.flat);
  }
  GradBucket travelling(
      sent, bucket, buckets_.size(), table_.tensors(), group_, timeout_, place_, std::move(leaves));
  return hook_(travelling);
}

/// Into this rank's part.
BucketWork BucketReduction::scatter(size_t bucket) const {
  const Bucket& sent = buckets_[bucket];
  const at::Tensor whole = buckets_.whole(bucket);  // which lives as long as it is sent
  const at::Tensor part = sent.memory->part();
  const at::ScalarType type = sent.flat.scalar_type();
  const at::Tensor result =
      part.scalar_type() == type ? part : at::empty(part.sizes(), part.options().dtype(type));
  comm::Work work = comm::reduce_scatter_async(
      result,
      sent.memory->pool().parts_by_rank(whole),
      group_,
      {.op = comm::ReduceOp::kAvg, .timeout = timeout_, .place = place_, .exact = exact_});
  return {std::move(work), [part, result] {
            if (!result.is_same(part)) {
              part.copy_(result);
            }
          }};
}

/// So that not all gradients are whole at one time.
void BucketReduction::settle_early() {
  constexpr size_t kUnderWay = 2;
  while (settled_ < sent_.size() &&
         (sent_.size() - settled_ > kUnderWay || sent_[settled_].work.is_completed())) {
    settle(settled_);
  }
}

void BucketReduction::settle(size_t bucket) {
  sent_[bucket].work.wait();
  if (sent_[bucket].finish) {
    sent_[bucket].finish();
  }
  sent_[bucket] = {};  // which would keep the memory
  ++settled_;
  const Bucket& reduced = buckets_[bucket];
  if (reduced.memory == nullptr) {
    return;
  }
  if (gives_parts()) {
    reduced.memory->drop();
  } else {
    reduced.memory->note_write();
    reduced.memory->keep();
  }
}

void BucketReduction::wait(int divisor) {
  const CommunicationTimes::Moment waited = now();
  ARGOSY_INVARIANT(sent_.size() == buckets_.size(), "parallel.ddp.wait");
  for (size_t b = 0; b < sent_.size(); ++b) {
    if (b == settled_) {
      settle(b);
    }
    if (divisor != group_.size()) {
      // From an average, not from the sum: that may exceed the range of a 16-bit float.
      const at::Tensor& mine =
          buckets_[b].memory != nullptr ? buckets_[b].memory->part() : buckets_[b].flat;
      mine.mul_(static_cast<double>(group_.size()) / divisor);
    }
  }
  for (const comm::Work& each : others_) {
    each.wait();
  }
  times_ = {.pass = times_.pass + 1, .begun = begun_, .waited = waited, .ended = now()};
}

}  // namespace argosy::parallel::ddp
