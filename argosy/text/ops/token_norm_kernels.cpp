#include "argosy/text/ops/token_norm_kernels.h"

#include <cmath>

#include "argosy/text/ops/kernel_types.h"

namespace argosy::text::kernels {
namespace {

struct Moments {
  float mean = 0;
  float inverse = 0;
};

template <typename T>
ARGOSY_KERNEL_INLINE Moments moments_of(const T* row, const NormShape& shape, double epsilon) {
  const auto width = static_cast<float>(shape.width);
  Moments moments;
  if (shape.centered) {
    Floats sum{};
    for_lanes(shape.width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
      Floats value;
      lanes.load(row + i, value);
      sum += value;
    });
    moments.mean = sum_of(sum) / width;
  }
  Floats squares{};
  for_lanes(shape.width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value;
    lanes.load(row + i, value);
    value = lanes.or_else(value - moments.mean, 0);
    squares += value * value;
  });
  const double variance = static_cast<double>(sum_of(squares)) / static_cast<double>(width);
  moments.inverse = static_cast<float>(1 / std::sqrt(variance + epsilon));
  return moments;
}

template <typename T, typename Out>
ARGOSY_KERNEL_INLINE void write_row(const T* row,
                                    int64_t width,
                                    const Moments& moments,
                                    const float* weight,
                                    const float* bias,
                                    Out* out) {
  for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
    Floats value, factor, summand{};
    lanes.load(row + i, value);
    lanes.load(weight + i, factor);
    if (bias != nullptr) {
      lanes.load(bias + i, summand);
    }
    lanes.store(Floats((value - moments.mean) * moments.inverse * factor + summand), out + i);
  });
}

}  // namespace

ARGOSY_KERNEL void norm_rows(const Source& x,
                             const Source& branch,
                             const NormShape& shape,
                             double epsilon,
                             const float* weight,
                             const float* bias,
                             void* sum,
                             const Target& normed,
                             float* mean,
                             float* inverse) {
  const int64_t width = shape.width;
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    auto* const added = as_type_of(in, sum);
    for (int64_t row = 0; row < shape.rows; ++row) {
      const auto* from = in + row * width;
      if (branch.data != nullptr) {
        with_type(branch, [&](const auto* other) ARGOSY_KERNEL_LAMBDA {
          for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
            Floats value, summand;
            lanes.load(from + i, value);
            lanes.load(other + row * width + i, summand);
            lanes.store(Floats(value + summand), added + row * width + i);
          });
        });
        from = added + row * width;
      }
      const Moments moments = moments_of(from, shape, epsilon);
      mean[row] = moments.mean;
      inverse[row] = moments.inverse;
      with_type(normed, [&](auto* out) ARGOSY_KERNEL_LAMBDA {
        write_row(from, width, moments, weight, bias, out + row * width);
      });
    }
  });
}

ARGOSY_KERNEL void norm_rows_gradient(const Source& x,
                                      const Source& of_normed,
                                      const Source& passed,
                                      const NormShape& shape,
                                      const float* weight,
                                      const float* mean,
                                      const float* inverse,
                                      void* dx,
                                      float* of_weight,
                                      float* of_bias) {
  const int64_t width = shape.width;
  const auto count = static_cast<float>(width);
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    auto* const out = as_type_of(in, dx);
    with_type(of_normed, [&](const auto* given) ARGOSY_KERNEL_LAMBDA {
      for (int64_t row = 0; row < shape.rows; ++row) {
        const int64_t at = row * width;
        const float center = mean[row];
        const float scale = inverse[row];
        Floats sum{}, product{};
        for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
          Floats value, gradient, factor, total;
          lanes.load(in + at + i, value);
          lanes.load(given + at + i, gradient);
          lanes.load(weight + i, factor);
          const Floats normal = lanes.or_else((value - center) * scale, 0);
          lanes.load(of_weight + i, total);
          lanes.store(Floats(total + gradient * normal), of_weight + i);
          if (of_bias != nullptr) {
            lanes.load(of_bias + i, total);
            lanes.store(Floats(total + gradient), of_bias + i);
          }
          gradient *= factor;
          sum += gradient;
          product += gradient * normal;
        });
        const float level = shape.centered ? sum_of(sum) / count : 0;
        const float slope = sum_of(product) / count;
        for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
          Floats value, gradient, factor, other{};
          lanes.load(in + at + i, value);
          lanes.load(given + at + i, gradient);
          lanes.load(weight + i, factor);
          if (passed.data != nullptr) {
            lanes.load(as_type_of(in, passed.data) + at + i, other);
          }
          const Floats normal = (value - center) * scale;
          lanes.store(Floats(other + scale * (gradient * factor - level - normal * slope)),
                      out + at + i);
        });
      }
    });
  });
}

}  // namespace argosy::text::kernels
