#pragma once

#include <concepts>
#include <optional>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace argosy::parallel::ddp {

/// Calls `visit` with what a tuple, a pair, an optional, a range or a map holds.
template <typename T, typename Visit>
void for_each_held(T& value, const Visit& visit) {
  if constexpr (requires { std::tuple_size<std::remove_const_t<T>>::value; }) {
    std::apply([&](auto&... each) { (visit(each), ...); }, value);
  } else if constexpr (std::ranges::input_range<T&>) {
    if constexpr (!std::is_arithmetic_v<std::ranges::range_value_t<T&>>) {
      for (auto&& each : value) {
        visit(each);
      }
    }
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    if (value.has_value()) {
      visit(*value);
    }
  }
}

/// Appends the tensors in `value`: a tensor, or nested tuples, pairs, optionals, ranges and maps of
/// tensors. ADL finds a function for a type of your own:
///
///     void collect_tensors(const Detections& d, std::vector<at::Tensor>& out) { … }
///
/// Other types add nothing; the wrapper then learns of their tensors only during backward.
struct OutputCollector {
  std::vector<at::Tensor>& out;

  template <typename T>
  void operator()(const T& value) const {
    if constexpr (std::convertible_to<const T&, const at::Tensor&>) {
      const at::Tensor& tensor = value;
      if (tensor.defined()) {
        out.push_back(tensor);
      }
    } else if constexpr (requires { collect_tensors(value, out); }) {
      collect_tensors(value, out);
    } else {
      for_each_held(value, *this);
    }
  }
};

/// Casts the tensors of type `from` that `value` holds, where they can be replaced.
struct OutputsIn {
  at::ScalarType from;
  at::ScalarType to = at::kFloat;

  template <typename T>
  void operator()(T& value) const {
    if constexpr (std::same_as<T, at::Tensor>) {
      if (value.defined() && value.scalar_type() == from) {
        value = value.to(to);
      }
    } else {
      for_each_held(value, *this);
    }
  }
};

}  // namespace argosy::parallel::ddp
