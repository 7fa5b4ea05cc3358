#include "argosy/train/dealing.h"

#include <algorithm>

#include "argosy/base/even_part.h"

namespace argosy::train {
namespace {

/// Ends of the batches of all ranks together.
std::vector<int64_t> cut(int64_t samples, int64_t together, int64_t ranks, bool drop_last) {
  std::vector<int64_t> ends;
  for (int64_t end = together; end <= samples; end += together) {
    ends.push_back(end);
  }
  const int64_t left = samples % together;
  if (left == 0 || drop_last) {
    return ends;
  }
  if (left < ranks && !ends.empty()) {
    ends.back() = samples;
  } else {
    ends.push_back(samples);
  }
  return ends;
}

/// The samples in the order in which ranks side by side would see them first, without the first
/// `done` batches.
std::vector<int64_t> after_first_leg(const Dealing& order, int64_t epoch, const Leg& leg) {
  std::vector<data::BatchPlan> plans;
  for (int64_t rank = 0; rank < leg.ranks; ++rank) {
    const data::DistributedBatchSampler sampler(order.samples,
                                                {.batch_size = leg.batch_size,
                                                 .num_replicas = static_cast<int>(leg.ranks),
                                                 .rank = static_cast<int>(rank),
                                                 .shuffle = order.shuffle,
                                                 .drop_last = order.drop_last,
                                                 .seed = order.seed});
    plans.push_back(sampler.plan(epoch));
  }
  std::vector<bool> had(static_cast<std::size_t>(order.samples), false);
  std::vector<int64_t> left;
  for (int64_t batch = 0; batch < plans.front().size(); ++batch) {
    for (const data::BatchPlan& plan : plans) {
      for (const int64_t sample : plan[batch]) {
        if (batch >= leg.done && !had[static_cast<std::size_t>(sample)]) {
          left.push_back(sample);
        }
        had[static_cast<std::size_t>(sample)] = true;
      }
    }
  }
  return left;
}

}  // namespace

std::vector<int64_t> remaining_samples(const Dealing& order,
                                       int64_t epoch,
                                       std::span<const Leg> legs) {
  std::vector<int64_t> left = after_first_leg(order, epoch, legs.front());
  for (const Leg& leg : legs.subspan(1)) {
    const std::vector<int64_t> ends = cut(
        static_cast<int64_t>(left.size()), leg.batch_size * leg.ranks, leg.ranks, order.drop_last);
    const auto done = std::min(static_cast<std::size_t>(leg.done), ends.size());
    left.erase(left.begin(), left.begin() + (done == 0 ? 0 : ends[done - 1]));
  }
  return left;
}

data::BatchPlan deal(std::span<const int64_t> samples, const DealOptions& options) {
  const auto [batch_size, ranks, rank, drop_last] = options;
  data::BatchPlan plan;
  int64_t begin = 0;
  for (const int64_t end :
       cut(static_cast<int64_t>(samples.size()), batch_size * ranks, ranks, drop_last)) {
    const int64_t size = end - begin;
    if (size < ranks) {
      plan.add(samples.subspan(static_cast<std::size_t>(begin + rank % size), 1));
    } else {
      const IndexRange share = even_part(size, ranks, rank);
      plan.add(samples.subspan(static_cast<std::size_t>(begin + share.begin),
                               static_cast<std::size_t>(share.size())));
    }
    begin = end;
  }
  return plan;
}

}  // namespace argosy::train
