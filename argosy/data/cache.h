#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/check.h"
#include "argosy/data/collate.h"
#include "argosy/data/dataset.h"
#include "argosy/data/fields.h"
#include "argosy/data/sample_cache.h"

namespace argosy::data {

namespace detail {

/// Bytes of a tensor's and its storage's own book-keeping, beside its elements.
constexpr int64_t kTensorBytes = 400;

/// Passes each tensor of a sample, however deep, to `visit`.
template <typename T, typename Visit>
void for_each_tensor(const T& part, const Visit& visit) {
  if constexpr (Tensor<T>) {
    visit(part);
  } else if constexpr (TupleLike<T>) {
    std::apply([&](const auto&... inner) { (for_each_tensor(inner, visit), ...); }, part);
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    for_each_tensor(fields_of(part), visit);
  }
}

/// Returns the bytes to which a sample refers outside itself.
template <typename T>
int64_t bytes_behind(const T& part) {
  if constexpr (Tensor<T>) {
    return part.defined() ? static_cast<int64_t>(part.nbytes()) + kTensorBytes : 0;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return 0;
  } else if constexpr (TupleLike<T>) {
    return std::apply([](const auto&... inner) { return (int64_t{0} + ... + bytes_behind(inner)); },
                      part);
  } else if constexpr (requires {
                         requires std::is_trivially_copyable_v<
                             std::remove_cvref_t<decltype(*std::data(part))>>;
                         std::size(part);
                       }) {
    return static_cast<int64_t>(std::size(part) * sizeof(*std::data(part)));
  } else {
    static_assert(std::is_aggregate_v<T>,
                  "Cache counts tensors, numbers, strings, vectors of such, and tuples, arrays or "
                  "structs of those; for anything else pass a function from sample to bytes");
    return bytes_behind(fields_of(part));
  }
}

/// Returns how often the sample's tensors were written to in place.
template <typename T>
int64_t writes_to(const T& sample) {
  int64_t writes = 0;
  for_each_tensor(sample, [&](const at::Tensor& tensor) {
    writes += tensor.defined() && !tensor.is_inference() ? tensor._version() : 0;
  });
  return writes;
}

}  // namespace detail

/// How Cache counts bytes unless it gets a function: it counts the elements of tensors, vectors and
/// strings.
struct SampleBytes {
  template <typename Sample>
  int64_t operator()(const Sample& sample) const {
    return static_cast<int64_t>(sizeof(Sample)) + detail::bytes_behind(sample);
  }
};

struct CacheOptions {
  /// Samples are kept until they take this many bytes. Later ones are made anew each time.
  int64_t max_bytes = int64_t{1} << 30;
};

/// A data set that keeps its samples in memory.
///
///     data::Cache decoded(pictures, {.max_bytes = 8LL << 30});
///     data::Map augmented(decoded, crop_and_flip);   // what draws stands above the cache
///     decoded.stats().hits
///
/// Samples are those that get(index) returns, even for a set that also has get(index, random); sets
/// of pictures refuse get(index) if their transform draws. See SampleCache for what is kept and
/// when; a data set that draws can use it for its encoded bytes. Tensors are handed out, not
/// copied, so nobody may write into them. At each hit the version that libtorch counts for a tensor
/// is compared. Copies share the cache. Thread-safe.
/// Errors: UsageError when a kept sample was written to in place.
template <Dataset D, typename Bytes = SampleBytes>
class Cache final {
  static_assert(
      GetsSample<D> || !GetsRandomSample<D>,
      "Cache of a data set that has get(index, random) alone: its samples differ in each epoch, "
      "and kept ones would not. Put the Cache below what draws: Map(Cache(set), augment)");
  static_assert(GetsRandomSample<D> || GetsSample<D>,
                "Cache keeps what get(index) returns: this data set has only get_batch()");

 public:
  using Sample = std::remove_cvref_t<decltype(std::declval<const D&>().get(int64_t{0}))>;

  explicit Cache(DatasetRef<D> dataset, const CacheOptions& options = {}, Bytes bytes = {})
      : dataset_(std::move(dataset)),
        bytes_(std::move(bytes)),
        cache_(std::make_shared<SampleCache<Kept>>(
            dataset_->size(),
            typename SampleCache<Kept>::Options{.max_bytes = options.max_bytes})) {}

  [[nodiscard]] int64_t size() const { return dataset_->size(); }
  [[nodiscard]] int64_t sample_key(int64_t index) const { return key_of(*dataset_, index); }
  [[nodiscard]] int64_t key_space() const { return key_space_of(*dataset_); }
  /// Returns the names of the classes, if the set has them.
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

  [[nodiscard]] Sample get(int64_t index) const {
    const std::shared_ptr<const Kept> kept = cache_->get(
        index,
        [&] {
          Sample sample = dataset_->get(index);
          const int64_t writes = detail::writes_to(sample);
          return Kept{std::move(sample), writes};
        },
        [&](const Kept& made) { return bytes_(made.sample); });
    ARGOSY_CHECK(detail::writes_to(kept->sample) == kept->writes,
                 "data.Cache",
                 "sample {} was written to in place by who got it, and everybody gets the same "
                 "tensor. Write into a clone()",
                 sample_key(index));
    return kept->sample;
  }

  [[nodiscard]] CacheStats stats() const { return cache_->stats(); }

 private:
  struct Kept {
    Sample sample;
    int64_t writes;
  };

  DatasetRef<D> dataset_;
  Bytes bytes_;
  std::shared_ptr<SampleCache<Kept>> cache_;
};

template <typename D>
explicit Cache(D&&, const CacheOptions& = {}) -> Cache<DatasetOf<D>>;
template <typename D, typename Bytes>
Cache(D&&, const CacheOptions&, Bytes) -> Cache<DatasetOf<D>, Bytes>;

}  // namespace argosy::data
