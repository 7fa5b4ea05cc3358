#pragma once

#include <cstdint>

#include "argosy/text/ops/kernel_kinds.h"

// Internal to the room. All numbers of a call have the kind of its first argument.
namespace argosy::text::kernels {

/// y = GELU(x) by the tanh formula.
void gelu(const Source& x, int64_t count, void* y);

/// dx = dy · GELU'(x)
void gelu_gradient(const Source& x, const void* dy, int64_t count, void* dx);

/// For each row of `width` gates and as many ups: y = SiLU(gate) · up.
void swiglu(const Source& gate_and_up, int64_t rows, int64_t width, void* y);

/// The gradients of gates and ups.
void swiglu_gradient(
    const Source& gate_and_up, const void* dy, int64_t rows, int64_t width, void* gradient);

/// y = x, of another kind.
void convert(const Source& x, int64_t count, const Target& y);

/// y = x + branch, of the kind of x; the branch has its own.
void add(const Source& x, const Source& branch, int64_t count, void* y);

/// Some columns of rows.
struct ColumnRange {
  int64_t rows = 0;
  int64_t columns = 0;  ///< of a row
  int64_t begin = 0;
  int64_t end = 0;
};

/// sums[c] += the sum of column c over the rows, in f32 within 32 rows and in f64 beyond.
void add_column_sums(const Source& x, const ColumnRange& range, double* sums);

}  // namespace argosy::text::kernels
