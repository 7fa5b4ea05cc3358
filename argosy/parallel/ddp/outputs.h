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

/// Appends the tensors that `value` holds: a tensor, or tuples, pairs, optionals, ranges and maps
/// of such, nested. A type of one's own joins in by a function found by ADL:
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
    } else if constexpr (requires { std::tuple_size<T>::value; }) {
      std::apply([this](const auto&... each) { ((*this)(each), ...); }, value);
    } else if constexpr (std::ranges::input_range<const T&>) {
      using Element = std::ranges::range_value_t<const T&>;
      if constexpr (!std::is_arithmetic_v<Element>) {
        for (const auto& each : value) {
          (*this)(each);
        }
      }
    } else if constexpr (requires {
                           value.has_value();
                           *value;
                         }) {
      if (value.has_value()) {
        (*this)(*value);
      }
    }
  }
};

}  // namespace argosy::parallel::ddp
