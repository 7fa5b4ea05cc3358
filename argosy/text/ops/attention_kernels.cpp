#include "argosy/text/ops/attention_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "argosy/text/ops/kernel_types.h"

namespace argosy::text::kernels {
namespace {

/// Zeros from `seen` to the end of a row.
template <typename T>
ARGOSY_KERNEL_INLINE void clear_unseen(T* row, int64_t seen, int64_t keys) {
  for_lanes(keys - seen, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    lanes.store(Floats{}, row + seen + i);
  });
}

template <typename T>
ARGOSY_KERNEL_INLINE float softmax_row(T* row, int64_t seen, float scale) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  Floats best = Floats{} + kLeast;
  for_lanes(seen, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value;
    lanes.load(row + i, value);
    value = lanes.or_else(value, kLeast);
    best = value > best ? value : best;
  });
  const float most = most_of(best) * scale;
  Floats total{};
  for_lanes(seen, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value;
    lanes.load(row + i, value);
    value = exponential(value * scale - most);
    total += lanes.or_else(value, 0);
    lanes.store(value, row + i);
  });
  const float sum = sum_of(total);
  const float share = 1 / sum;
  for_lanes(seen, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value;
    lanes.load(row + i, value);
    lanes.store(Floats(value * share), row + i);
  });
  return most + std::log(sum);
}

}  // namespace

ARGOSY_KERNEL void causal_softmax(const Target& scores, const ScoreShape& shape, float* log_sum) {
  with_type(scores, [&](auto* all) ARGOSY_KERNEL_LAMBDA {
    for (int64_t i = 0; i < shape.queries; ++i) {
      auto* const row = all + i * shape.keys;
      const int64_t seen = std::min(shape.keys, shape.first + i + 1);
      log_sum[i] = softmax_row(row, seen, shape.scale);
      clear_unseen(row, seen, shape.keys);
    }
  });
}

ARGOSY_KERNEL void causal_softmax_gradient(const Target& scores,
                                           const Target& of_weights,
                                           const ScoreShape& shape,
                                           const float* log_sum,
                                           const float* product) {
  with_type(scores, [&](auto* all) ARGOSY_KERNEL_LAMBDA {
    auto* const gradients = as_type_of(all, of_weights.data);
    for (int64_t i = 0; i < shape.queries; ++i) {
      auto* const row = all + i * shape.keys;
      auto* const gradient = gradients + i * shape.keys;
      const int64_t seen = std::min(shape.keys, shape.first + i + 1);
      for_lanes(seen, [&](auto lanes, int64_t k) ARGOSY_KERNEL_LAMBDA {
        Floats value, given;
        lanes.load(row + k, value);
        lanes.load(gradient + k, given);
        const Floats weight = exponential(value * shape.scale - log_sum[i]);
        lanes.store(weight, row + k);
        lanes.store(Floats(weight * (given - product[i]) * shape.scale), gradient + k);
      });
      clear_unseen(row, seen, shape.keys);
      clear_unseen(gradient, seen, shape.keys);
    }
  });
}

ARGOSY_KERNEL void head_products(
    const Source& x, const Source& y, int64_t rows, int64_t heads, int64_t width, float* products) {
  with_type(x, [&](const auto* first) ARGOSY_KERNEL_LAMBDA {
    const auto* const second = as_type_of(first, y.data);
    for (int64_t head = 0; head < rows * heads; ++head) {
      Floats sum{};
      for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats one, other;
        lanes.load(first + head * width + i, one);
        lanes.load(second + head * width + i, other);
        sum += one * other;
      });
      products[head] = sum_of(sum);
    }
  });
}

ARGOSY_KERNEL void rotate_rows(
    const Source& x, const RotationShape& shape, const float* cosine, const float* sine, void* y) {
  const int64_t half = shape.half;
  const float sign = shape.back ? -1.0F : 1.0F;
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    auto* const out = as_type_of(in, y);
    for (int64_t row = 0; row < shape.rows; ++row) {
      const int64_t begin = row * shape.row_width;
      for (int64_t at = begin; at < begin + shape.rotated * 2 * half; at += 2 * half) {
        for_lanes(half, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
          Floats first, second, across, up;
          lanes.load(in + at + i, first);
          lanes.load(in + at + half + i, second);
          lanes.load(cosine + row * half + i, across);
          lanes.load(sine + row * half + i, up);
          up *= sign;
          lanes.store(Floats(first * across - second * up), out + at + i);
          lanes.store(Floats(second * across + first * up), out + at + half + i);
        });
      }
      const int64_t rest = begin + shape.rotated * 2 * half;
      for_lanes(begin + shape.row_width - rest, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats value;
        lanes.load(in + rest + i, value);
        lanes.store(value, out + rest + i);
      });
    }
  });
}

}  // namespace argosy::text::kernels
