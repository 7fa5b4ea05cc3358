#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "argosy/data/dataset.h"
#include "argosy/data/iterable_dataset.h"
#include "argosy/data/random.h"

namespace argosy::data {

namespace detail {

/// Calls f(sample, random), or f(sample) if it takes no stream.
template <typename F, typename Sample>
auto call_map(const F& function, Sample&& sample, Random& random) {
  if constexpr (std::invocable<const F&, Sample, Random&>) {
    return function(std::forward<Sample>(sample), random);
  } else {
    static_assert(std::invocable<const F&, Sample>,
                  "the function of a Map is called, through const, as f(sample) or f(sample, "
                  "random) with what get() of the data set returns; this one takes neither");
    return function(std::forward<Sample>(sample));
  }
}

/// The type that get(index) returns.
template <typename D>
using PlainSample = decltype(std::declval<const D&>().get(int64_t{0}));

/// A set and a function that need no stream. It is a concept, because in the requires-clause of a
/// member clang 14 checks the second half even if the first is false.
template <typename D, typename F>
concept MapsPlainSample = GetsSample<D> && std::invocable<const F&, PlainSample<D>>;

/// True if a Map needs a random stream for its samples.
template <typename D, typename F>
constexpr bool map_draws() {
  if constexpr (GetsRandomSample<D>) {
    return true;
  } else {
    return std::invocable<const F&, PlainSample<D>, Random&>;
  }
}

}  // namespace detail

/// A data set whose samples pass through a function at the time at which they are read.
///
///     data::Map faces(table, [](Face face) { face.points /= 96; return face; });
///     data::Map flipped(faces, [](Face face, data::Random& random) { … });
///
/// `function` is f(sample) or f(sample, random). Several threads call it at once, through const.
/// The stream is the sample's own, after the wrapped set's draws from it. A tensor that it gets may
/// be the set's own memory, so it must return a new one instead of writing into it. It also works
/// for a stream, where loader threads call it at once, outside their turns at next(). The wrapped
/// set needs get(); its get_batch() is not used.
/// Errors: exceptions of the function are treated like those of get(), and get the sample's index.
template <typename D, typename F>
class Map final {
  static_assert(GetsSample<D> || GetsRandomSample<D> || IterableDataset<D>,
                "Map calls get(): this data set has only get_batch()");

 public:
  Map(DatasetRef<D> dataset, F function)
      : dataset_(std::move(dataset)), function_(std::move(function)) {}

  [[nodiscard]] int64_t size() const requires Dataset<D> { return dataset_->size(); }
  [[nodiscard]] int64_t sample_key(int64_t index) const requires Dataset<D> {
    return key_of(*dataset_, index);
  }
  [[nodiscard]] int64_t key_space() const requires Dataset<D> { return key_space_of(*dataset_); }

  [[nodiscard]] auto get(int64_t index) const requires detail::MapsPlainSample<D, F> {
    return function_(dataset_->get(index));
  }
  [[nodiscard]] auto get(int64_t index, Random& random) const
      requires(Dataset<D>&& detail::map_draws<D, F>()) {
    if constexpr (GetsRandomSample<D>) {
      return detail::call_map(function_, dataset_->get(index, random), random);
    } else {
      return detail::call_map(function_, dataset_->get(index), random);
    }
  }

  /// For a stream: returns its items as they are …
  template <typename T = D>
  requires IterableDataset<T>
  [[nodiscard]] auto stream(const Pass& pass) const { return dataset_->stream(pass); }
  /// … and calls the function on their samples.
  template <typename T = D>
  requires IterableDataset<T>
  [[nodiscard]] auto get(ItemOf<T> item, Random& random) const {
    return detail::call_map(function_, get_sample(*dataset_, item, random), random);
  }

 private:
  DatasetRef<D> dataset_;
  F function_;
};

template <typename D, typename F>
Map(D&&, F) -> Map<DatasetOf<D>, F>;

}  // namespace argosy::data
