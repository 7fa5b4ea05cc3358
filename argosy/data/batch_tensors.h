#pragma once

#include <cstddef>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/fields.h"

// The tensors of a batch, for who brings them elsewhere.
namespace argosy::data::detail {

/// A struct that names its tensors: auto tensors() { return std::tie(images, boxes); }
template <typename T>
concept NamesTensors = requires(T& batch) {
  requires TupleLike<decltype(batch.tensors())>;
};

/// A container of parts.
template <typename T>
concept PartRange = requires(T& batch) {
  requires std::ranges::range<T>;
  requires std::is_lvalue_reference_v<decltype(*std::ranges::begin(batch))>;
  // A path is a range of paths.
  requires !std::is_same_v<std::remove_cvref_t<decltype(*std::ranges::begin(batch))>, T>;
};

/// True if tensors_in() finds the tensors of such a batch.
template <typename T>
constexpr bool holds_tensors() {
  if constexpr (Tensor<T> || NamesTensors<T>) {
    return true;
  } else if constexpr (TupleLike<T>) {
    return []<size_t... I>(std::index_sequence<I...>) {
      return (holds_tensors<std::tuple_element_t<I, T>>() || ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (PartRange<T>) {
    return holds_tensors<std::remove_cvref_t<std::ranges::range_reference_t<T>>>();
  } else {
    return false;
  }
}

/// True if nothing in such a batch may hide a tensor from tensors_in().
template <typename T>
constexpr bool hides_no_tensors() {
  if constexpr (Tensor<T> || NamesTensors<T>) {
    return true;
  } else if constexpr (TupleLike<T>) {
    return []<size_t... I>(std::index_sequence<I...>) {
      return (hides_no_tensors<std::tuple_element_t<I, T>>() && ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (PartRange<T>) {
    return hides_no_tensors<std::remove_cvref_t<std::ranges::range_reference_t<T>>>();
  } else {
    return !std::is_class_v<T>;
  }
}

template <typename T>
void add_tensors(T& part, std::vector<at::Tensor*>& all) {
  using Part = std::remove_const_t<T>;
  if constexpr (std::is_same_v<T, at::Tensor>) {
    all.push_back(&part);
  } else if constexpr (!holds_tensors<Part>() || Tensor<T>) {
    return;
  } else if constexpr (NamesTensors<T>) {
    std::apply([&](auto&... inner) { (add_tensors(inner, all), ...); }, part.tensors());
  } else if constexpr (TupleLike<T>) {
    std::apply([&](auto&... inner) { (add_tensors(inner, all), ...); }, part);
  } else if constexpr (PartRange<T>) {
    for (auto& inner : part) {
      add_tensors(inner, all);
    }
  }
}

/// Returns a batch's tensors: itself, or those of its vectors, maps, tuples, pairs and arrays, and
/// what the tensors() of a struct names.
template <typename Batch>
std::vector<at::Tensor*> tensors_in(Batch& batch) {
  std::vector<at::Tensor*> all;
  add_tensors(batch, all);
  return all;
}

}  // namespace argosy::data::detail
