#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::metrics {

/// The samples of classes_golden.py, by the same formulas; full of ties.
struct GoldenSamples {
  static constexpr int64_t kSamples = 211, kClasses = 5;
  at::Tensor scores = torch::empty({kSamples}, torch::kDouble);
  at::Tensor positive = torch::empty({kSamples}, torch::kLong);
  at::Tensor logits = torch::empty({kSamples, kClasses}, torch::kDouble);
  at::Tensor labels = torch::empty({kSamples}, torch::kLong);

  GoldenSamples() {
    for (int64_t i = 0; i < kSamples; ++i) {
      const double score = static_cast<double>(i * 7919 % 101) / 100;
      scores[i] = score;
      positive[i] = static_cast<int64_t>((((i * 31 + 7) % 5) < 2) != (score > 0.6));
      for (int64_t c = 0; c < kClasses; ++c) {
        logits[i][c] = static_cast<double>((i * 37 + c * 53 + i * c * 11) % 97) / 10;
      }
      labels[i] = i % 3 == 0 ? logits[i].argmax().item<int64_t>() : i * 13 % 4;
    }
  }
};

template <typename F>
std::string usage_error(F call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace argosy::metrics
