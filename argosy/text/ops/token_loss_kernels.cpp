#include "argosy/text/ops/token_loss_kernels.h"

#include <cmath>
#include <limits>

#include "argosy/text/ops/kernel_types.h"

namespace argosy::text::kernels {
namespace {

struct SoftmaxSum {
  float most = 0;
  float sum = 0;  // of e^(logit - most)
};

template <typename T>
ARGOSY_KERNEL_INLINE SoftmaxSum softmax_sum(const T* row, int64_t classes) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  Floats best = Floats{} + kLeast;
  for_lanes(classes, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value;
    lanes.load(row + i, value);
    value = lanes.or_else(value, kLeast);
    best = value > best ? value : best;
  });
  SoftmaxSum result{most_of(best), 0};
  Floats total{};
  for_lanes(classes, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value;
    lanes.load(row + i, value);
    total += lanes.or_else(exponential(value - result.most), 0);
  });
  result.sum = sum_of(total);
  return result;
}

ARGOSY_KERNEL_INLINE float number_at(const float* from) {
  return *from;
}
ARGOSY_KERNEL_INLINE float number_at(const Bf16* from) {
  Floats value;
  Lanes<false>{1}.load(from, value);
  return value[0];
}

}  // namespace

ARGOSY_KERNEL void token_losses(const Target& logits,
                                const int64_t* targets,
                                const LossShape& shape,
                                double* losses) {
  with_type(logits, [&](auto* all) ARGOSY_KERNEL_LAMBDA {
    for (int64_t r = 0; r < shape.rows; ++r) {
      auto* const row = all + r * shape.classes;
      const bool counts = targets[r] != shape.ignore_index;
      losses[r] = 0;
      SoftmaxSum softmax{0, std::numeric_limits<float>::infinity()};
      float of_target = 0;
      if (counts) {
        softmax = softmax_sum(row, shape.classes);
        of_target = number_at(row + targets[r]);
        losses[r] = std::log(static_cast<double>(softmax.sum)) + static_cast<double>(softmax.most) -
                    static_cast<double>(of_target);
      }
      if (!shape.gradient) {
        continue;
      }
      const float factor = counts ? shape.share / softmax.sum : 0;
      for_lanes(shape.classes, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats value{};
        if (counts) {
          lanes.load(row + i, value);
          value = exponential(value - softmax.most) * factor;
        }
        lanes.store(value, row + i);
      });
      if (counts) {
        const float probability = std::exp(of_target - softmax.most) / softmax.sum;
        const Floats gradient = Floats{} + (probability - 1) * shape.share;
        Lanes<false>{1}.store(gradient, row + targets[r]);
      }
    }
  });
}

}  // namespace argosy::text::kernels
