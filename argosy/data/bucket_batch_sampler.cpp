#include "argosy/data/bucket_batch_sampler.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/data/permutation.h"
#include "argosy/data/random.h"

namespace argosy::data {
namespace {

using Lengths = std::shared_ptr<const std::vector<int64_t>>;

constexpr const char* kSampler = "data.BucketBatchSampler";

DistributedBatchSamplerOptions dealing_options(const BucketBatchSamplerOptions& options) {
  return {.batch_size = options.batch_size,
          .num_replicas = options.num_replicas,
          .rank = options.rank,
          .drop_last = options.drop_last,
          .virtual_ranks = options.virtual_ranks,
          .micro_batches = options.micro_batches,
          .seed = options.seed};
}

Lengths checked(std::span<const int64_t> lengths, const BucketBatchSamplerOptions& options) {
  ARGOSY_CHECK(options.bucket_batches > 0,
               kSampler,
               "bucket_batches must be positive, got {}",
               options.bucket_batches);
  const auto negative =
      std::find_if(lengths.begin(), lengths.end(), [](int64_t n) { return n < 0; });
  ARGOSY_CHECK(negative == lengths.end(),
               kSampler,
               "length of sample {} must not be negative, got {}",
               negative - lengths.begin(),
               *negative);
  return std::make_shared<const std::vector<int64_t>>(lengths.begin(), lengths.end());
}

/// Shuffles by the seed and the epoch. `what`: another number gives another order.
void shuffle(std::vector<int64_t>& values, uint64_t seed, int64_t epoch, uint64_t what) {
  const uint64_t mixed = mix(mix(seed, what), static_cast<uint64_t>(epoch));
  numpy_shuffle(values, static_cast<uint32_t>(mixed));
}

std::vector<int64_t> in_buckets(std::vector<int64_t> padded,
                                int64_t epoch,
                                const std::vector<int64_t>& lengths,
                                const BucketBatchSamplerOptions& options) {
  if (options.shuffle) {
    shuffle(padded, options.seed, epoch, 0);
  }
  const int64_t ranks = options.virtual_ranks > 0 ? options.virtual_ranks : options.num_replicas;
  const int64_t step = ranks * options.batch_size;
  const int64_t steps = static_cast<int64_t>(padded.size()) / step;
  for (int64_t first = 0; first < steps; first += options.bucket_batches) {
    const int64_t last = std::min(first + options.bucket_batches, steps);
    std::stable_sort(padded.begin() + first * step,
                     padded.begin() + last * step,
                     [&](int64_t a, int64_t b) { return lengths[a] < lengths[b]; });
  }
  if (!options.shuffle) {
    return padded;
  }
  std::vector<int64_t> order = in_order(steps);
  shuffle(order, options.seed, epoch, 1);
  std::vector<int64_t> arranged;
  arranged.reserve(padded.size());
  for (const int64_t at : order) {
    const auto begin = padded.begin() + at * step;
    arranged.insert(arranged.end(), begin, begin + step);
  }
  arranged.insert(arranged.end(), padded.begin() + steps * step, padded.end());
  return arranged;
}

}  // namespace

BucketBatchSampler::BucketBatchSampler(std::span<const int64_t> lengths,
                                       const BucketBatchSamplerOptions& options)
    : DistributedBatchSampler(static_cast<int64_t>(lengths.size()),
                              dealing_options(options),
                              [lengths = checked(lengths, options), options](
                                  std::vector<int64_t> padded, int64_t epoch) {
                                return in_buckets(std::move(padded), epoch, *lengths, options);
                              }) {}

}  // namespace argosy::data
