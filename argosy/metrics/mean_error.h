#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/metrics/state.h"
#include "argosy/metrics/sum_over_ranks.h"

// Mean errors of regression.
namespace argosy::metrics {

enum class ErrorKind { kSquared, kAbsolute };

/// The mean of (output - target)² or of |output - target| over all elements of all ranks.
///
///     MeanSquaredError mse;
///     mse.update(output, target);
///     double value = mse.compute(group);
///
/// Errors are computed in f64 and summed without rounding (ExactSum), so the result has the same
/// bits for any distribution of the samples over ranks. A NaN makes it NaN. Without elements it is
/// NaN.
/// Not thread-safe. Cost: about 6 ns per element.
template <ErrorKind K>
class MeanError final {
 public:
  /// Shape: equal shapes, of any floating or integer types.
  /// Errors: UsageError if the shapes differ, because broadcasting is nearly always a mistake here.
  void update(const at::Tensor& output, const at::Tensor& target);

  /// Collective over `group`; an empty group means this process alone.
  [[nodiscard]] double compute(const comm::Group& group = {}) const;
  [[nodiscard]] std::vector<double> values(const comm::Group& group = {}) const {
    return {compute(group)};
  }
  /// Returns the number of elements of all ranks. Collective like compute().
  [[nodiscard]] int64_t count(const comm::Group& group = {}) const;
  /// "mse" or "mae".
  [[nodiscard]] std::vector<std::string> names() const;
  void reset() { *this = MeanError(); }
  [[nodiscard]] State state() const;
  void load_state(const State& state);
  void merge_state(const State& other);

 private:
  SumOverRanks sum_;
  int64_t count_ = 0;
};

using MeanSquaredError = MeanError<ErrorKind::kSquared>;
using MeanAbsoluteError = MeanError<ErrorKind::kAbsolute>;

extern template class MeanError<ErrorKind::kSquared>;
extern template class MeanError<ErrorKind::kAbsolute>;

}  // namespace argosy::metrics
