#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

// A batch as the metrics of classes read it: checked, on the CPU, in row-major order.
namespace argosy::metrics {

/// Scores of two classes and their labels.
struct BinaryBatch {
  at::Tensor scores;         ///< f32 or f64, contiguous [N]
  std::vector<bool> labels;  ///< as many
  [[nodiscard]] double score(int64_t i) const;
};

/// Shape: scores [N] or [N, 1], with `pairs` also [N, 2], whose column 1 counts; labels [N] or
/// [N, 1], 0 and 1 of any type. Errors: UsageError in the name of `where`.
enum class ScorePairs { kRefused, kAllowed };
[[nodiscard]] BinaryBatch binary_batch(const char* where,
                                       const at::Tensor& scores,
                                       const at::Tensor& labels,
                                       ScorePairs pairs);

/// Classes that were predicted and that are right.
struct ClassBatch {
  std::vector<int64_t> predicted;
  std::vector<int64_t> labels;
};

/// Shape: scores [N, C], of which the first highest counts, or integers [N] or [N, 1], classes
/// themselves; labels [N] or [N, 1]. Errors: UsageError in the name of `where`.
[[nodiscard]] ClassBatch class_batch(const char* where,
                                     const at::Tensor& scores,
                                     const at::Tensor& labels,
                                     int64_t classes);

}  // namespace argosy::metrics
