#include "argosy/parallel/traffic/leaf_average.h"

#include <cstdint>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

namespace argosy::parallel::traffic {
namespace {

bool is_short(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16;
}

/// The nodes that this process brings, of its leaves.
std::vector<at::Tensor> added_up(std::vector<at::Tensor> leaves,
                                 const comm::LeafDeal& deal,
                                 int rank) {
  std::vector<at::Tensor> nodes;
  size_t next = 0;
  const comm::LeafDeal mine = deal.leaves_of(rank);
  for (const comm::LeafDeal::Sum& sum : mine.sums()) {
    for (uint8_t merges : sum.merges) {
      nodes.push_back(std::move(leaves[next++]));
      for (; merges > 0; --merges) {
        const at::Tensor right = std::move(nodes.back());
        nodes.pop_back();
        nodes.back().add_(right);
      }
    }
  }
  return nodes;
}

}  // namespace

LeafAverage average_leaves(std::vector<at::Tensor> leaves,
                           const at::Tensor& like,
                           const Deal& deal,
                           const comm::Group& group,
                           comm::AllReduceOptions options) {
  const at::NoGradGuard no_grad;
  options.op = comm::ReduceOp::kAvg;
  if (deal->leaves() == deal->ranks()) {
    at::Tensor own = std::move(leaves.front());
    return {comm::all_reduce_async(own, group, options), own};
  }
  const at::ScalarType type = is_short(like.scalar_type()) ? at::kFloat : like.scalar_type();
  for (at::Tensor& leaf : leaves) {
    leaf = leaf.to(type);
  }
  const comm::LeafTensors brought{.deal = deal,
                                  .nodes = added_up(std::move(leaves), *deal, group.rank()),
                                  .result = at::empty_like(like, like.options().dtype(type))};
  return {comm::all_reduce_async(brought, group, options), brought.result};
}

BucketWork average_bucket(const GradBucket& bucket, const Deal& deal) {
  std::vector<at::Tensor> leaves;
  for (size_t leaf = 0; leaf < bucket.leaves(); ++leaf) {
    leaves.push_back(bucket.flat_of(leaf));
  }
  LeafAverage all = average_leaves(std::move(leaves),
                                   bucket.buffer(),
                                   deal,
                                   bucket.group(),
                                   {.timeout = bucket.timeout(), .place = bucket.place()});
  return {std::move(all.work),
          [buffer = bucket.buffer(), average = all.result] { buffer.copy_(average); }};
}

}  // namespace argosy::parallel::traffic
