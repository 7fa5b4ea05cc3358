#include "argosy/train/leaving.h"

#include <limits>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/comm/collectives.h"

namespace argosy::train::detail {
namespace {

constexpr int64_t kBatchesOfRound = 8;

int64_t max_over_ranks(int64_t value, const comm::Group& group) {
  if (group.size() == 1) {
    return value;
  }
  const at::Tensor all = at::full({}, value, at::kLong);
  comm::all_reduce(all, group, {.op = comm::ReduceOp::kMax});
  return all.item<int64_t>();
}

}  // namespace

Leaving::Leaving(std::function<bool()> asked,
                 std::optional<int64_t> batches,
                 const comm::Group& group)
    : asked_(std::move(asked)), group_(group) {
  if (asked_ == nullptr) {
    return;
  }
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  const int64_t most = max_over_ranks(batches.value_or(kUnknown), group_);
  if (most == kUnknown) {
    asked_ = nullptr;
  } else {
    rounds_ = most / kBatchesOfRound;
  }
}

bool Leaving::together() {
  ++round_;
  left_ = max_over_ranks(asked_() ? 1 : 0, group_) > 0;
  return left_;
}

bool Leaving::after(int64_t number) {
  if (asked_ == nullptr) {
    return false;
  }
  if (group_.size() == 1) {
    return left_ = asked_();
  }
  // Not more often than the others, should a loader give more batches than it has said.
  return (number + 1) % kBatchesOfRound == 0 && round_ < rounds_ && together();
}

bool Leaving::at_end() {
  while (asked_ != nullptr && group_.size() > 1 && !left_ && round_ < rounds_) {
    (void)together();
  }
  return left_;
}

}  // namespace argosy::train::detail
