#include "argosy/data/sampler.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/data/checks.h"
#include "argosy/data/permutation.h"

namespace argosy::data {

Sampler::Sampler(int64_t size, Order order) : size_(size), order_(std::move(order)) {
  check_samples("data.Sampler", size);
  ARGOSY_CHECK(
      order_ != nullptr, "data.Sampler", "expected a function from epoch to order, got none");
}

std::vector<int64_t> Sampler::next_epoch() {
  const SamplerState start = cursor_->begin();
  cursor_->consumed(start.epoch, 1, 1);
  return order(start.epoch);
}

SequenceSampler::SequenceSampler(int64_t n) : Sampler(n, [n](int64_t) { return in_order(n); }) {}

RandomSampler::RandomSampler(int64_t n, const RandomSamplerOptions& options)
    : Sampler(n, [n, seed = options.seed](int64_t epoch) {
        return torch_randperm(n, seed + static_cast<uint64_t>(epoch));
      }) {}

namespace {

int64_t samples_per_rank(int64_t n, const DistributedSamplerOptions& options) {
  check_samples("data.DistributedSampler", n);
  check_rank("data.DistributedSampler", options.rank, options.num_replicas);
  return options.drop_last ? n / options.num_replicas : ceil_div(n, options.num_replicas);
}

std::vector<int64_t> strided(int64_t n, const DistributedSamplerOptions& options, int64_t epoch) {
  std::vector<int64_t> indices =
      options.shuffle ? torch_randperm(n, options.seed + static_cast<uint64_t>(epoch))
                      : in_order(n);
  const int64_t mine = samples_per_rank(n, options);
  pad_with_head(indices, mine * options.num_replicas);
  std::vector<int64_t> taken(mine);
  for (int64_t i = 0; i < mine; ++i) {
    taken[i] = indices[options.rank + i * options.num_replicas];
  }
  return taken;
}

}  // namespace

DistributedSampler::DistributedSampler(int64_t n, const DistributedSamplerOptions& options)
    : Sampler(samples_per_rank(n, options),
              [n, options](int64_t epoch) { return strided(n, options, epoch); }) {}

}  // namespace argosy::data
