#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

namespace argosy::train {

/// What the speed of a training counts.
struct Counted {
  const char* things = "images";
  int64_t in_a_sample = 1;

  /// The name of the speed in records: "tokens_per_second".
  [[nodiscard]] std::string rate_name() const { return std::string(things) + "_per_second"; }
};

/// Returns what a batch's inputs are: images [N, C, H, W], tokens [N, T] of int64, which count
/// with padding, or samples. `before`: what it is for a batch without inputs.
[[nodiscard]] inline Counted counted_in(std::span<const at::Tensor> inputs, const Counted& before) {
  if (inputs.empty()) {
    return before;
  }
  const at::Tensor& first = inputs.front();
  if (first.dim() == 2 && first.scalar_type() == at::kLong) {
    return {.things = "tokens", .in_a_sample = first.size(1)};
  }
  return {.things = first.dim() == 4 ? "images" : "samples"};
}

}  // namespace argosy::train
