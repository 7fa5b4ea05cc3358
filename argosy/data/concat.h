#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/error.h"
#include "argosy/data/checks.h"
#include "argosy/data/dataset.h"
#include "argosy/data/fields.h"

namespace argosy::data {

namespace detail {

/// A tensor, or a tuple, pair or array of such, from which batches are put together.
template <typename T>
constexpr bool is_row_batch() {
  if constexpr (Tensor<T>) {
    return true;
  } else if constexpr (TupleLike<T>) {
    return []<size_t... I>(std::index_sequence<I...>) {
      return (is_row_batch<std::tuple_element_t<I, std::remove_cvref_t<T>>>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<T>>>());
  } else {
    return false;
  }
}

template <typename D>
using BatchOf = std::remove_cvref_t<decltype(std::declval<const D&>().get_batch(
    std::span<const int64_t>(), std::declval<const BatchContext&>()))>;

/// True if all have get_batch(), with batches that can be put together.
template <typename First, typename... Rest>
constexpr bool have_equal_batches() {
  if constexpr (GetsBatch<First> && (GetsBatch<Rest> && ...)) {
    return is_row_batch<BatchOf<First>>() && (std::is_same_v<BatchOf<First>, BatchOf<Rest>> && ...);
  } else {
    return false;
  }
}

/// Joins rows of several batches to one: row i of pieces[k] becomes row to[k][i].
/// Errors: DataError when the pieces' rows differ in shape or dtype, with one of context.indices.
at::Tensor merge_rows(std::span<const at::Tensor> pieces,
                      std::span<const std::vector<int64_t>> to,
                      const BatchContext& context);

/// Does the same for tuples. part(k) is piece k's.
template <typename T, typename Part>
auto merge_batches(const Part& part,
                   std::span<const std::vector<int64_t>> to,
                   const BatchContext& context) {
  if constexpr (Tensor<T>) {
    std::vector<at::Tensor> pieces;
    for (size_t k = 0; k < to.size(); ++k) {
      pieces.push_back(part(k));
    }
    return merge_rows(pieces, to, context);
  } else {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return T{merge_batches<std::tuple_element_t<I, T>>(
          [&](size_t k) -> const auto& { return std::get<I>(part(k)); }, to, context)...};
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  }
}

}  // namespace detail

/// Several data sets one after another: sample i of the second is sample (size of the first) + i.
///
///     data::Concat all(train, extra);                      // sets of any types, equal samples
///     data::Concat shards(std::vector<Shard>{…});          // so many as there are
///
/// Errors and random streams use the same numbers, counted in the sets that hold the data
/// (key_of()). So samples of different parts never share a stream. It has the functions that all
/// parts have: get() and get_batch(); also get(index, random) when one part has it.
/// Lifetime: as for DatasetRef; a vector's sets are moved in.
template <typename... Ds>
class Concat final {
  using First =
      std::tuple_element_t<0, std::tuple<Ds..., void>>;  // clang 14 asks about no sets too
  using Part = std::variant<DatasetRef<Ds>...>;
  static constexpr bool kPlain = (GetsSample<Ds> && ...);
  static constexpr bool kRandom =
      ((GetsSample<Ds> || GetsRandomSample<Ds>)&&...) && (GetsRandomSample<Ds> || ...);
  static constexpr bool kBatches = detail::have_equal_batches<Ds...>();
  static_assert(kPlain || kRandom || kBatches,
                "Concat needs get() of all its sets, or get_batch() of all with equal tuples of "
                "tensors");

 public:
  explicit Concat(DatasetRef<Ds>... parts) {
    add_all(std::index_sequence_for<Ds...>(), std::move(parts)...);
  }
  explicit Concat(std::vector<First> parts) requires(sizeof...(Ds) == 1) {
    for (First& part : parts) {
      add<0>(DatasetRef<First>(std::move(part)));
    }
  }

  [[nodiscard]] int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] int64_t sample_key(int64_t index) const {
    const Place at = find(index);
    return at_part(at.part, [&](const auto& set) { return key_of(set, at.index); }) +
           key_offsets_[at.part];
  }
  [[nodiscard]] int64_t key_space() const { return key_offsets_.back(); }

  [[nodiscard]] auto get(int64_t index) const requires kPlain {
    const Place at = find(index);
    return with_index_of_whole(at.part, [&] {
      return at_part(at.part,
                     [&](const auto& set) -> SampleOf<First> { return set.get(at.index); });
    });
  }

  [[nodiscard]] auto get(int64_t index, Random& random) const requires kRandom {
    const Place at = find(index);
    return with_index_of_whole(at.part, [&] {
      return at_part(at.part, [&](const auto& set) -> SampleOf<First> {
        if constexpr (GetsRandomSample<std::remove_cvref_t<decltype(set)>>) {
          return set.get(at.index, random);
        } else {
          return set.get(at.index);
        }
      });
    });
  }

  [[nodiscard]] auto get_batch(std::span<const int64_t> indices,
                               const BatchContext& context) const requires kBatches {
    using Batch = detail::BatchOf<First>;
    std::vector<size_t> asked;                    // parts, in the order of their first sample
    std::vector<std::vector<int64_t>> inner, to;  // per entry of `asked`
    for (size_t i = 0; i < indices.size(); ++i) {
      const Place at = find(indices[i]);
      const size_t k = std::find(asked.begin(), asked.end(), at.part) - asked.begin();
      if (k == asked.size()) {
        asked.push_back(at.part);
        inner.emplace_back();
        to.emplace_back();
      }
      inner[k].push_back(at.index);
      to[k].push_back(static_cast<int64_t>(i));
    }
    std::vector<Batch> pieces;
    for (size_t k = 0; k < asked.size(); ++k) {
      pieces.push_back(batch_of_part(asked[k], inner[k], context));
    }
    if (pieces.size() == 1) {
      return std::move(pieces.front());
    }
    std::vector<int64_t> keys;  // names of the samples in messages
    for (const int64_t index : indices) {
      keys.push_back(sample_key(index));
    }
    BatchContext named = context;
    named.indices = keys;
    return detail::merge_batches<Batch>(
        [&](size_t k) -> const Batch& { return pieces[k]; }, to, named);
  }

 private:
  static_assert(
      !(kPlain || kRandom) ||
          [] {
            if constexpr (kPlain || kRandom) {
              return (std::is_same_v<SampleOf<First>, SampleOf<Ds>> && ...);
            } else {
              return true;
            }
          }(),
      "the sets of a Concat must have equal samples: put a Map before the one that differs");

  struct Place {
    size_t part;
    int64_t index;  // in it
  };

  template <size_t I>
  void add(DatasetRef<std::tuple_element_t<I, std::tuple<Ds...>>> part) {
    ends_.push_back(size() + part->size());
    key_offsets_.push_back(key_offsets_.back() + key_space_of(*part));
    parts_.emplace_back(std::in_place_index<I>, std::move(part));
  }
  template <size_t... I>
  void add_all(std::index_sequence<I...>, DatasetRef<Ds>... parts) {
    (add<I>(std::move(parts)), ...);
  }

  [[nodiscard]] Place find(int64_t index) const {
    check_index("data.Concat", index, size());
    const size_t part = std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin();
    return {part, part == 0 ? index : index - ends_[part - 1]};
  }

  template <typename F>
  auto at_part(size_t part, const F& f) const {
    return std::visit([&](const auto& set) { return f(*set); }, parts_[part]);
  }

  template <typename F>
  auto with_index_of_whole(size_t part, const F& f) const {
    try {
      return f();
    } catch (const DataError& error) {
      if (error.place().index < 0 || key_offsets_[part] == 0) {
        throw;
      }
      throw error.with_index(error.place().index + key_offsets_[part]);
    }
  }

  [[nodiscard]] auto batch_of_part(size_t part,
                                   std::span<const int64_t> indices,
                                   const BatchContext& context) const {
    BatchContext inner = context;
    inner.indices = indices;
    inner.key_offset += key_offsets_[part];
    return with_index_of_whole(part, [&] {
      return at_part(part, [&](const auto& set) { return set.get_batch(inner.indices, inner); });
    });
  }

  std::vector<Part> parts_;
  std::vector<int64_t> ends_;               // of each part, in the whole
  std::vector<int64_t> key_offsets_ = {0};  // of each part, and the whole
};

template <typename... Ds>
Concat(Ds&&...) -> Concat<DatasetOf<Ds>...>;
template <typename D>
explicit Concat(std::vector<D>) -> Concat<D>;

}  // namespace argosy::data
