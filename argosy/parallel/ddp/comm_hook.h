#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"

namespace argosy::parallel {

namespace ddp {
struct Bucket;
}

/// A bucket of gradients during its reduction, as a communication hook gets it.
///
/// Lifetime: refers to the wrapper's own bucket; valid until the hook's BucketWork has finished.
class GradBucket final {
 public:
  GradBucket(ddp::Bucket& bucket,
             size_t index,
             size_t count,
             std::span<const at::Tensor> parameters,
             const comm::Group& group,
             std::chrono::milliseconds timeout,
             const transport::TrainingPlace& place = {},
             std::vector<at::Tensor> leaves = {})
      : bucket_(&bucket),
        index_(index),
        count_(count),
        parameters_(parameters),
        group_(&group),
        timeout_(timeout),
        place_(place),
        leaves_(std::move(leaves)) {}

  /// The position in the order of reduction, from 0, equal on all ranks. It changes when the
  /// buckets are rebuilt.
  [[nodiscard]] size_t index() const { return index_; }
  [[nodiscard]] bool is_last() const { return index_ + 1 == count_; }
  /// All gradients of the bucket: flat, 1-D, contiguous. The gaps between gradients are zero.
  [[nodiscard]] const at::Tensor& buffer() const;
  /// The gradients, views into buffer(), and their parameters.
  [[nodiscard]] const std::vector<at::Tensor>& gradients() const;
  [[nodiscard]] std::vector<at::Tensor> parameters() const;
  /// The gradients of each virtual rank of this process in their order, none on a spare: shaped as
  /// gradients(), which are the last one's. A CommHook sees one; see GradientCompressor.
  [[nodiscard]] size_t leaves() const { return leaves_.size(); }
  [[nodiscard]] std::vector<at::Tensor> gradients_of(size_t leaf) const;
  /// The same, flat as buffer().
  [[nodiscard]] const at::Tensor& flat_of(size_t leaf) const { return leaves_[leaf]; }
  /// A slot that lives as long as the bucket, for a hook's own copy: allocate once, reuse each
  /// step.
  [[nodiscard]] at::Tensor& scratch() const;
  [[nodiscard]] const comm::Group& group() const { return *group_; }
  /// Returns DdpOptions::timeout; zero means the group's.
  [[nodiscard]] std::chrono::milliseconds timeout() const { return timeout_; }
  /// The pass and update to which the reduction belongs. Give it to the hook's all_reduce, as
  /// AllReduceOptions::place: ranks that are out of step are then named.
  [[nodiscard]] const transport::TrainingPlace& place() const { return place_; }

 private:
  ddp::Bucket* bucket_;
  size_t index_;
  size_t count_;
  std::span<const at::Tensor> parameters_;
  const comm::Group* group_;
  std::chrono::milliseconds timeout_;
  transport::TrainingPlace place_;
  std::vector<at::Tensor> leaves_;  // flat, as the bucket
};

/// The work that a hook started, and the rest to do when it has ended.
struct BucketWork {
  BucketWork() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a hook may return the Work itself.
  BucketWork(comm::Work started, std::function<void()> then = {})
      : work(std::move(started)), finish(std::move(then)) {}

  comm::Work work{};
  /// Runs after work has succeeded, before backward() returns, in the thread that called it.
  std::function<void()> finish{};
};

/// How the ranks average a bucket.
///
///     ddp.register_comm_hook([](parallel::GradBucket& bucket) {  // the default, spelled out
///       return comm::all_reduce_async(
///           bucket.buffer(),
///           bucket.group(),
///           {.op = comm::ReduceOp::kAvg, .place = bucket.place()});
///     });
///
/// Contract: after `finish` has run, bucket.buffer() holds the *average* over all ranks of the
/// group. The hook divides, as in PyTorch; nothing else divides before or after it. It must not
/// replace the buffer. The hook runs inside backward(), once per bucket, in the same order on all
/// ranks. It starts communication there and waits for it in `finish`. It must start the same
/// operations on all ranks. With uneven inputs (join) it also runs on ranks that have finished,
/// with zeros.
/// Errors: backward() throws the hook's exceptions with their own type.
using CommHook = std::function<BucketWork(GradBucket& bucket)>;

namespace ddp {

/// A hook that sees the gradients of each virtual rank, and remembers something of each.
struct Compressor {
  CommHook hook{};
  std::string name{};
  /// Tells which virtual ranks the processes have, at once and where that changes. It may throw.
  std::function<void(const std::shared_ptr<const comm::LeafDeal>&)> deal{};
};

/// The hook that sends gradients as a 16-bit type.
struct Compress {
  at::ScalarType type{};
  BucketWork operator()(GradBucket& bucket) const;
};

}  // namespace ddp

/// Returns the default hook: an all-reduce with ReduceOp::kAvg, in place.
[[nodiscard]] CommHook average();
/// Returns a hook that sends f32 and f64 gradients as f16: half or a quarter of the bytes. The
/// relative error is up to 2^-10; values beyond 65504 become infinite. The sum is taken in f32.
/// Other dtypes travel as they are.
[[nodiscard]] CommHook fp16_compress();
/// The same with bf16, which has the range of f32; relative error up to 2^-7.
[[nodiscard]] CommHook bf16_compress();

}  // namespace argosy::parallel
