#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/data/checks.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"

namespace argosy::data {

/// Throws UsageError unless every index lies in 0 … size - 1.
void check_indices(const char* where, std::span<const int64_t> indices, int64_t size);

/// Some samples of a data set, in an order of your own. Samples keep their random streams of the
/// whole set, so a split changes no augmentation, and errors name a sample by its place there.
template <Dataset D>
class Subset final {
 public:
  Subset(DatasetRef<D> dataset, std::vector<int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {
    check_indices("data.Subset", indices_, dataset_->size());
  }

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(indices_.size()); }
  [[nodiscard]] const std::vector<int64_t>& indices() const { return indices_; }
  /// Returns the whole set.
  [[nodiscard]] const D& dataset() const { return *dataset_; }
  /// Returns the names of the classes, if the whole set has them.
  [[nodiscard]] decltype(auto) classes() const requires HasClasses<D> {
    return dataset_->classes();
  }
  /// Makes a batch of samples, if the whole set does.
  template <typename Sample>
  requires HasCollate<D, Sample>
  [[nodiscard]] auto collate(const std::vector<Sample>& samples,
                             const BatchContext& context) const {
    return detail::collate_samples(*dataset_, DefaultCollate(), samples, context);
  }

  [[nodiscard]] decltype(auto) get(int64_t index) const requires GetsSample<D> {
    return dataset_->get(in_whole(index));
  }

  /// Returns the place of sample `index` in the whole set; see key_of().
  [[nodiscard]] int64_t sample_key(int64_t index) const {
    return key_of(*dataset_, in_whole(index));
  }
  [[nodiscard]] int64_t key_space() const { return key_space_of(*dataset_); }

  [[nodiscard]] decltype(auto) get(int64_t index,
                                   Random& random) const requires GetsRandomSample<D> {
    return dataset_->get(in_whole(index), random);
  }

  [[nodiscard]] auto get_batch(std::span<const int64_t> indices,
                               const BatchContext& context) const requires GetsBatch<D> {
    std::vector<int64_t> inner;
    inner.reserve(indices.size());
    for (const int64_t index : indices) {
      inner.push_back(in_whole(index));
    }
    BatchContext translated = context;
    translated.indices = inner;
    return dataset_->get_batch(translated.indices, translated);
  }

 private:
  [[nodiscard]] int64_t in_whole(int64_t index) const {
    check_index("data.Subset", index, size());
    return indices_[index];
  }

  DatasetRef<D> dataset_;
  std::vector<int64_t> indices_;
};

template <typename D>
Subset(D&&, std::vector<int64_t>) -> Subset<DatasetOf<D>>;

struct RandomSplitOptions {
  uint64_t seed = 0;
};

/// Returns the sizes of the parts into which `fractions` (sum 1) cut n samples. They are rounded
/// down, and the rest goes one each to the first parts. Source: torch.utils.data.random_split,
/// paddle.io.random_split.
std::vector<int64_t> split_sizes(int64_t n, std::span<const double> fractions);

/// Cuts a permutation of 0 … n - 1 (torch_randperm of the seed) into parts of these sizes.
/// Errors: UsageError unless the sizes are not negative and sum to n.
std::vector<std::vector<int64_t>> split_indices(int64_t n,
                                                std::span<const int64_t> sizes,
                                                const RandomSplitOptions& options);

/// Cuts a set into random disjoint parts that together are the whole set. Sizes are fractions or
/// counts.
///
///     auto [train, valid] = data::random_split(faces, {0.8, 0.2}, {.seed = 43});
///
/// Lifetime: as for DatasetRef: the parts refer to a named set, and share a temporary.
template <typename D, typename T, size_t N>
auto random_split(D&& dataset, const T (&parts)[N], const RandomSplitOptions& options = {}) {
  using Set = DatasetOf<D>;
  const DatasetRef<Set> shared(std::forward<D>(dataset));
  std::vector<int64_t> sizes;
  if constexpr (std::is_floating_point_v<T>) {
    const std::vector<double> fractions(parts, parts + N);
    sizes = split_sizes(shared->size(), fractions);
  } else {
    sizes.assign(parts, parts + N);
  }
  std::vector<std::vector<int64_t>> indices = split_indices(shared->size(), sizes, options);
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return std::array<Subset<Set>, N>{Subset<Set>(shared, std::move(indices[I]))...};
  }
  (std::make_index_sequence<N>());
}

}  // namespace argosy::data
