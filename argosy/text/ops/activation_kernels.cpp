#include "argosy/text/ops/activation_kernels.h"

#include <algorithm>

#include "argosy/text/ops/kernel_types.h"

namespace argosy::text::kernels {
namespace {

constexpr float kRoot = 0.7978845608F;  // √(2/π)
constexpr float kCube = 0.044715F;
/// The number of rows that are summed in f32.
constexpr int64_t kRun = 32;

/// The x/2 · (1 + tanh(u)) of the formula is x · sigmoid(2u).
ARGOSY_KERNEL_INLINE Floats gate_of(const Floats& x, const Floats& square) {
  return sigmoid(x * (2 * kRoot) * (1.0F + kCube * square));
}

}  // namespace

ARGOSY_KERNEL void gelu(const Source& x, int64_t count, void* y) {
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    auto* const out = as_type_of(in, y);
    for_lanes(count, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
      Floats value;
      lanes.load(in + i, value);
      lanes.store(Floats(value * gate_of(value, value * value)), out + i);
    });
  });
}

ARGOSY_KERNEL void gelu_gradient(const Source& x, const void* dy, int64_t count, void* dx) {
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    const auto* const given = as_type_of(in, dy);
    auto* const out = as_type_of(in, dx);
    for_lanes(count, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
      Floats value, gradient;
      lanes.load(in + i, value);
      lanes.load(given + i, gradient);
      const Floats square = value * value;
      const Floats gate = gate_of(value, square);
      const Floats slope = (2 * kRoot) * (1.0F + (3 * kCube) * square);
      lanes.store(Floats(gradient * (gate + value * slope * gate * (1.0F - gate))), out + i);
    });
  });
}

ARGOSY_KERNEL void swiglu(const Source& gate_and_up, int64_t rows, int64_t width, void* y) {
  with_type(gate_and_up, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    auto* const out = as_type_of(in, y);
    for (int64_t row = 0; row < rows; ++row) {
      const auto* const gates = in + row * 2 * width;
      for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats gate, up;
        lanes.load(gates + i, gate);
        lanes.load(gates + width + i, up);
        lanes.store(Floats(gate * sigmoid(gate) * up), out + row * width + i);
      });
    }
  });
}

ARGOSY_KERNEL void swiglu_gradient(
    const Source& gate_and_up, const void* dy, int64_t rows, int64_t width, void* gradient) {
  with_type(gate_and_up, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    const auto* const given = as_type_of(in, dy);
    auto* const out = as_type_of(in, gradient);
    for (int64_t row = 0; row < rows; ++row) {
      const auto* const gates = in + row * 2 * width;
      auto* const into = out + row * 2 * width;
      for_lanes(width, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats gate, up, of_y;
        lanes.load(gates + i, gate);
        lanes.load(gates + width + i, up);
        lanes.load(given + row * width + i, of_y);
        const Floats share = sigmoid(gate);
        lanes.store(Floats(of_y * up * share * (1.0F + gate * (1.0F - share))), into + i);
        lanes.store(Floats(of_y * gate * share), into + width + i);
      });
    }
  });
}

ARGOSY_KERNEL void convert(const Source& x, int64_t count, const Target& y) {
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    with_type(y, [&](auto* out) ARGOSY_KERNEL_LAMBDA {
      for_lanes(count, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats value;
        lanes.load(in + i, value);
        lanes.store(value, out + i);
      });
    });
  });
}

ARGOSY_KERNEL void add(const Source& x, const Source& branch, int64_t count, void* y) {
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    auto* const out = as_type_of(in, y);
    with_type(branch, [&](const auto* other) ARGOSY_KERNEL_LAMBDA {
      for_lanes(count, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        Floats value, summand;
        lanes.load(in + i, value);
        lanes.load(other + i, summand);
        lanes.store(Floats(value + summand), out + i);
      });
    });
  });
}

ARGOSY_KERNEL void add_column_sums(const Source& x, const ColumnRange& range, double* sums) {
  with_type(x, [&](const auto* in) ARGOSY_KERNEL_LAMBDA {
    for (int64_t begin = 0; begin < range.rows; begin += kRun) {
      const int64_t end = std::min(range.rows, begin + kRun);
      for_lanes(range.end - range.begin, [&](auto lanes, int64_t i) ARGOSY_KERNEL_LAMBDA {
        const int64_t column = range.begin + i;
        Floats sum{};
        for (int64_t row = begin; row < end; ++row) {
          Floats value;
          lanes.load(in + row * range.columns + column, value);
          sum += value;
        }
        for (int64_t k = 0; k < lanes.count; ++k) {
          sums[column + k] += static_cast<double>(sum[k]);
        }
      });
    }
  });
}

}  // namespace argosy::text::kernels
