#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/data/dataset.h"
#include "argosy/data/fields.h"

namespace argosy::data {

namespace detail {

/// Returns a sample or batch as a tuple of its fields. One without fields is the only field.
template <typename T>
auto as_fields(T sample) {
  if constexpr (TupleLike<T>) {
    return sample;
  } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    return std::apply([](const auto&... field) { return std::make_tuple(field...); },
                      fields_of(sample));
  } else {
    return std::make_tuple(std::move(sample));
  }
}

}  // namespace detail

/// Data sets side by side: sample i has the fields of sample i of each. It is Paddle's
/// ComposeDataset.
///
///     data::Zip pairs(images, masks);
///     for (auto& [image, label, mask] : data::DataLoader(pairs, {.batch_size = 8})) ...
///
/// Fields: the parts of a tuple, pair, array or struct, in their order; anything else is one field.
/// A part that draws gets its own copy of the sample's stream, so parts that make the same draws (a
/// crop of image and mask) draw the same numbers. Samples have the names of the first set. It has
/// get() when all have it, and get_batch() when all have it and none draws.
/// Errors: UsageError unless all sets have equally many samples.
template <typename... Ds>
class Zip final {
  static constexpr bool kSamples = ((GetsSample<Ds> || GetsRandomSample<Ds>)&&...);
  static constexpr bool kDraws = (GetsRandomSample<Ds> || ...);
  static constexpr bool kBatches = (GetsBatch<Ds> && ...) && !kDraws;
  static_assert(kSamples || kBatches, "Zip needs get() of all its sets, or get_batch() of all");

 public:
  explicit Zip(DatasetRef<Ds>... parts) : parts_(std::move(parts)...) {
    const int64_t expected = first().size();
    size_t number = 0;
    for (const int64_t size : sizes()) {
      ARGOSY_CHECK(size == expected,
                   "data.Zip",
                   "expected equally many samples, got {} in set 0 and {} in set {}",
                   expected,
                   size,
                   number);
      ++number;
    }
  }

  [[nodiscard]] int64_t size() const { return first().size(); }
  [[nodiscard]] int64_t sample_key(int64_t index) const { return key_of(first(), index); }
  [[nodiscard]] int64_t key_space() const { return key_space_of(first()); }

  [[nodiscard]] auto get(int64_t index) const requires(GetsSample<Ds>&&...) {
    return side_by_side([&](const auto& set) { return set.get(index); });
  }

  [[nodiscard]] auto get(int64_t index, Random& random) const requires(kSamples&& kDraws) {
    return side_by_side([&](const auto& set) {
      if constexpr (GetsRandomSample<std::remove_cvref_t<decltype(set)>>) {
        Random own = random;
        return set.get(index, own);
      } else {
        return set.get(index);
      }
    });
  }

  [[nodiscard]] auto get_batch(std::span<const int64_t> indices,
                               const BatchContext& context) const requires kBatches {
    return side_by_side([&](const auto& set) { return set.get_batch(indices, context); });
  }

 private:
  [[nodiscard]] const auto& first() const { return *std::get<0>(parts_); }
  [[nodiscard]] std::vector<int64_t> sizes() const {
    return std::apply([](const auto&... set) { return std::vector<int64_t>{set->size()...}; },
                      parts_);
  }

  /// Returns the fields of ask(set) of all sets, in their order.
  template <typename Ask>
  auto side_by_side(const Ask& ask) const {
    return std::apply([](auto&&... fields) { return std::tuple_cat(std::move(fields)...); },
                      std::apply(
                          [&](const auto&... set) {
                            return std::tuple<decltype(detail::as_fields(ask(*set)))...>{
                                detail::as_fields(ask(*set))...};
                          },
                          parts_));
  }

  std::tuple<DatasetRef<Ds>...> parts_;
};

template <typename... Ds>
Zip(Ds&&...) -> Zip<DatasetOf<Ds>...>;

}  // namespace argosy::data
