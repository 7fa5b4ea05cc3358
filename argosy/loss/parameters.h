#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/loss/reduction.h"

// A loss's options in words, for records of a run. An option that is at its default is left out.
namespace argosy::loss {

/// Returns "label_smoothing=0.1", or nothing if the value is the default.
template <typename T>
[[nodiscard]] std::string in_words(std::string_view name, const T& value, const T& default_value) {
  return value == default_value ? "" : fmt::format("{}={}", name, value);
}
/// Returns "weight=[1, 2.5]", "weight=[1000] numbers" for more than 16, or nothing without any.
[[nodiscard]] std::string in_words(std::string_view name, const at::Tensor& factors);
/// Returns nothing for the mean.
[[nodiscard]] std::string in_words(Reduction reduction);

/// Returns those that are not empty, with commas between.
[[nodiscard]] std::string joined(const std::vector<std::string>& options);

}  // namespace argosy::loss
