#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ATen/core/Tensor.h>

// The fields of a sample, which collate stacks, Zip joins and Cache counts.
namespace argosy::data::detail {

template <typename T>
concept Tensor = std::is_same_v<std::remove_cvref_t<T>, at::Tensor>;

template <typename T>
concept TupleLike = requires {
  std::tuple_size<std::remove_cvref_t<T>>::value;
};

/// Converts to anything, to find the number of a struct's fields.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): never defined, only asked about
};

template <typename T, size_t... I>
constexpr bool made_of(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), Anything())...};
  };
}

constexpr size_t kMostFields = 6;

template <typename T, size_t N = kMostFields>
constexpr size_t fields() {
  if constexpr (N == 0 || made_of<T>(std::make_index_sequence<N>())) {
    return N;
  } else {
    return fields<T, N - 1>();
  }
}

/// Returns the fields of a struct as a tuple of references.
template <typename T>
auto fields_of(const T& s) {
  constexpr size_t kFields = fields<T>();
  static_assert(kFields > 0, "a sample struct needs 1 to 6 fields, or pass a collate function");
  if constexpr (kFields == 1) {
    const auto& [a] = s;
    return std::tie(a);
  } else if constexpr (kFields == 2) {
    const auto& [a, b] = s;
    return std::tie(a, b);
  } else if constexpr (kFields == 3) {
    const auto& [a, b, c] = s;
    return std::tie(a, b, c);
  } else if constexpr (kFields == 4) {
    const auto& [a, b, c, d] = s;
    return std::tie(a, b, c, d);
  } else if constexpr (kFields == 5) {
    const auto& [a, b, c, d, e] = s;
    return std::tie(a, b, c, d, e);
  } else {
    const auto& [a, b, c, d, e, f] = s;
    return std::tie(a, b, c, d, e, f);
  }
}

/// Returns a tuple of part(0), part(1), …, made in this order, so that the first bad field raises
/// the error.
template <typename Part, size_t... I>
auto tuple_of(const Part& part, std::index_sequence<I...>) {
  return std::tuple<decltype(part(std::integral_constant<size_t, I>()))...>{
      part(std::integral_constant<size_t, I>())...};
}

}  // namespace argosy::data::detail
