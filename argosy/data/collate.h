#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/fields.h"

namespace argosy::data {

/// Stacks tensors of equal shape to one tensor [samples, …]. Images get the memory format of the
/// context.
///
/// Errors: DataError naming the sample whose shape or dtype differs from the first one's.
[[nodiscard]] at::Tensor stack(const std::vector<at::Tensor>& samples, const BatchContext& context);

/// Returns `tensor` in the memory format of the context, or itself if it has that already.
[[nodiscard]] at::Tensor in_memory_format(at::Tensor tensor, const BatchContext& context);

namespace detail {

/// Does the same for the tensors of a batch: the batch itself, or the parts of a tuple, pair or
/// array. Other types stay as they are.
template <typename Batch>
Batch laid_out(Batch batch, const BatchContext& context) {
  if constexpr (Tensor<Batch>) {
    return in_memory_format(std::move(batch), context);
  } else if constexpr (TupleLike<Batch>) {
    if (context.memory_format != at::MemoryFormat::Contiguous) {
      std::apply([&](auto&... part) { ((part = laid_out(std::move(part), context)), ...); }, batch);
    }
    return batch;
  } else {
    return batch;
  }
}

template <typename T>
constexpr at::ScalarType scalar_type() {
  if constexpr (std::is_same_v<T, bool>) {
    return at::kBool;
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return at::kLong;
  } else if constexpr (std::is_same_v<T, float>) {
    return at::kFloat;
  } else {
    return at::kDouble;
  }
}

template <typename T>
at::Tensor collate_numbers(size_t n, auto field, const BatchContext& context) {
  using Stored =
      std::conditional_t<std::is_same_v<T, bool> || std::is_floating_point_v<T>, T, int64_t>;
  at::Tensor out = context.empty({static_cast<int64_t>(n)}, scalar_type<T>());
  auto* to = static_cast<Stored*>(out.data_ptr());
  for (size_t i = 0; i < n; ++i) {
    to[i] = static_cast<Stored>(field(i));
  }
  return out;
}

/// field(i) returns a reference to this field of sample i. Returns a tensor, or a tuple of its
/// collated parts.
template <typename Field>
auto collate_field(size_t n, const Field& field, const BatchContext& context) {
  using T = std::remove_cvref_t<decltype(field(size_t{0}))>;
  if constexpr (Tensor<T>) {
    std::vector<at::Tensor> tensors;
    tensors.reserve(n);
    for (size_t i = 0; i < n; ++i) {
      tensors.push_back(field(i));
    }
    return stack(tensors, context);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return collate_numbers<T>(n, field, context);
  } else if constexpr (TupleLike<T>) {
    return tuple_of(
        [&]<size_t I>(std::integral_constant<size_t, I>) {
          return collate_field(
              n, [&](size_t i) -> decltype(auto) { return std::get<I>(field(i)); }, context);
        },
        std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    static_assert(std::is_aggregate_v<T>,
                  "a sample is a tensor, a number, or a tuple, array or struct of such; for "
                  "anything else pass a collate function to the DataLoader");
    using Parts = decltype(fields_of(field(size_t{0})));
    return tuple_of(
        [&]<size_t I>(std::integral_constant<size_t, I>) {
          return collate_field(
              n,
              [&](size_t i) -> decltype(auto) { return std::get<I>(fields_of(field(i))); },
              context);
        },
        std::make_index_sequence<std::tuple_size_v<Parts>>());
  }
}

}  // namespace detail

/// Makes a batch of samples unless the loader gets a function or the data set has a collate(). It
/// stacks each field along a new first dimension.
///
/// at::Tensor → tensor [n, …]; integers and enums → i64 [n], bool → bool [n], float → f32 [n],
/// double → f64 [n]; tuple, pair, array or plain struct (up to 6 fields) → std::tuple of those,
/// nested ones too.
struct DefaultCollate {
  template <typename Sample>
  auto operator()(const std::vector<Sample>& samples, const BatchContext& context) const {
    // decltype(auto): a reference, but for the values that a vector<bool> gives out.
    return detail::collate_field(
        samples.size(), [&](size_t i) -> decltype(auto) { return samples[i]; }, context);
  }
};

/// Calls a collate function of either form: f(samples) or f(samples, context).
template <typename Collate, typename Sample>
auto call_collate(const Collate& collate,
                  const std::vector<Sample>& samples,
                  const BatchContext& context) {
  if constexpr (std::is_invocable_v<const Collate&,
                                    const std::vector<Sample>&,
                                    const BatchContext&>) {
    return collate(samples, context);
  } else {
    return collate(samples);
  }
}

namespace detail {

/// Returns the batch of a data set's samples: by the loader's collate function, or else by the data
/// set's own, or else stacked.
template <typename D, typename Collate, typename Sample>
auto collate_samples(const D& dataset,
                     const Collate& collate,
                     const std::vector<Sample>& samples,
                     const BatchContext& context) {
  if constexpr (std::is_same_v<Collate, DefaultCollate> && HasCollate<D, Sample>) {
    if constexpr (requires { dataset.collate(samples, context); }) {
      return dataset.collate(samples, context);
    } else {
      return dataset.collate(samples);
    }
  } else {
    return call_collate(collate, samples, context);
  }
}

}  // namespace detail

}  // namespace argosy::data
