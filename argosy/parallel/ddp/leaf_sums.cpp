#include "argosy/parallel/ddp/leaf_sums.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>

#include "argosy/base/check.h"

namespace argosy::parallel::ddp {
namespace {

/// How often the two highest of the waiting nodes are added after each leaf of `rank`.
std::vector<uint8_t> merges_of(const comm::LeafDeal& deal, int rank) {
  const comm::LeafDeal mine = deal.leaves_of(rank);
  std::vector<uint8_t> merges;
  for (const comm::LeafDeal::Sum& sum : mine.sums()) {
    merges.insert(merges.end(), sum.merges.begin(), sum.merges.end());
  }
  return merges;
}

}  // namespace

LeafSums::LeafSums(std::shared_ptr<const comm::LeafDeal> deal, const comm::Group& group)
    : deal_(std::move(deal)), group_(group), merges_(merges_of(*deal_, group.rank())) {}

// By the rules of keep() and average().
int64_t LeafSums::nodes_in_memory(const comm::LeafDeal& deal, int rank, bool in_f32) {
  if (deal.leaves() == deal.ranks()) {
    return 0;
  }
  const std::vector<uint8_t> merges = merges_of(deal, rank);
  int64_t made = 0, waiting = 0;
  for (std::size_t leaf = 0; leaf + 1 < merges.size(); ++leaf) {
    waiting += 1 - merges[leaf];
    made = std::max(made, waiting);
  }
  return std::max(made, waiting + (in_f32 ? 1 : 0));
}

void LeafSums::restart() noexcept {
  waiting_.clear();
}

void LeafSums::follow_buckets() noexcept {
  restart();
  free_.clear();
}

LeafSums::Stack& LeafSums::waiting(size_t pass, size_t bucket) {
  waiting_.resize(std::max(waiting_.size(), pass + 1));
  std::vector<Stack>& of_pass = waiting_[pass];
  of_pass.resize(std::max(of_pass.size(), bucket + 1));
  free_.resize(std::max(free_.size(), bucket + 1));
  return of_pass[bucket];
}

bool LeafSums::rounds(at::ScalarType type) const {
  return rounding_.has_value() && (type == at::kFloat || type == at::kDouble);
}

at::ScalarType LeafSums::type_of_sums(at::ScalarType type) const {
  return type == at::kHalf || type == at::kBFloat16 || rounds(type) ? at::kFloat : type;
}

/// Memory for a node, uninitialised.
at::Tensor LeafSums::room(size_t bucket, const at::Tensor& gradients) {
  Stack& free = free_[bucket];
  if (free.empty()) {
    return at::empty({gradients.numel()},
                     gradients.options().dtype(type_of_sums(gradients.scalar_type())));
  }
  at::Tensor taken = std::move(free.back());
  free.pop_back();
  return taken;
}

void LeafSums::round(const at::Tensor& gradients) const {
  if (rounds(gradients.scalar_type())) {
    gradients.copy_(gradients.to(*rounding_));
  }
}

void LeafSums::keep(size_t pass, int64_t leaf, size_t bucket, const at::Tensor& gradients) {
  Stack& nodes = waiting(pass, bucket);
  if (keeps_whole_) {
    nodes.push_back(gradients.clone());
    return;
  }
  round(gradients);
  uint8_t merges = merges_[static_cast<size_t>(leaf)];
  if (merges == 0) {
    nodes.push_back(room(bucket, gradients));
    nodes.back().copy_(gradients);
    return;
  }
  nodes.back().add_(gradients);
  for (; merges > 1; --merges) {
    at::Tensor right = std::move(nodes.back());
    nodes.pop_back();
    nodes.back().add_(right);
    free_[bucket].push_back(std::move(right));
  }
}

void LeafSums::check_complete(size_t nodes, size_t expected) const {
  ARGOSY_CHECK(nodes == expected,
               "parallel.ddp",
               "virtual ranks of this process made different numbers of backward passes in one "
               "update. Let each make as many, also for an empty batch: multiply its loss by 0.");
}

std::vector<at::Tensor> LeafSums::take(size_t pass, size_t bucket) {
  if (merges_.size() <= 1) {  // a process with one leaf keeps nothing, in passes without number
    return {};
  }
  Stack kept = std::exchange(waiting(pass, bucket), {});
  check_complete(kept.size(), is_spare() ? 0 : merges_.size() - 1);
  return kept;
}

/// Into `sum`, which may be the gradients themselves. What the process brings is then on the stack.
void LeafSums::add_last(size_t bucket,
                        const at::Tensor& gradients,
                        const at::Tensor& sum,
                        Stack& nodes) {
  const uint8_t merges = merges_.back();
  check_complete(nodes.size() + 1, deal_->nodes(group_.rank()).size() + merges);
  round(gradients);
  if (!sum.is_same(gradients)) {
    sum.copy_(gradients);
  }
  at::Tensor to = sum;
  for (uint8_t merge = 0; merge < merges; ++merge) {
    at::add_out(to, nodes.back(), sum);
    free_[bucket].push_back(std::move(nodes.back()));
    nodes.pop_back();
  }
  nodes.push_back(sum);
}

BucketWork LeafSums::average(size_t pass,
                             size_t bucket,
                             const at::Tensor& gradients,
                             comm::AllReduceOptions options) {
  Stack& nodes = waiting(pass, bucket);
  const bool in_place = type_of_sums(gradients.scalar_type()) == gradients.scalar_type();
  const at::Tensor sum = in_place ? gradients : room(bucket, gradients);
  if (!is_spare()) {
    add_last(bucket, gradients, sum, nodes);
  }
  const comm::LeafTensors leaves{.deal = deal_, .nodes = std::exchange(nodes, {}), .result = sum};
  options.op = comm::ReduceOp::kAvg;
  comm::Work work = comm::all_reduce_async(leaves, group_, options);
  for (const at::Tensor& node : leaves.nodes) {
    if (!node.is_same(sum)) {
      free_[bucket].push_back(node);
    }
  }
  if (!in_place) {
    free_[bucket].push_back(sum);
  }
  return {std::move(work), [this, gradients, sum, in_place] {
            if (!in_place) {
              gradients.copy_(sum);
            }
            round(gradients);
          }};
}

void LeafSums::check_all_taken(size_t passes) const {
  const auto is_left = [](const Stack& nodes) { return !nodes.empty(); };
  for (size_t pass = passes; pass < waiting_.size(); ++pass) {
    ARGOSY_CHECK(std::ranges::none_of(waiting_[pass], is_left),
                 "parallel.ddp",
                 "the last virtual rank of this process made {} averaged backward passes in this "
                 "update, the ones before made {}. Let each make as many.",
                 passes,
                 waiting_.size());
  }
}

}  // namespace argosy::parallel::ddp
