#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::ps {

/// One row that is to be updated.
struct RowUpdate {
  float* weights = nullptr;         ///< [dim]
  float* state = nullptr;           ///< [state_size]
  const float* gradient = nullptr;  ///< [dim]
  float shows = 1;                  ///< how often the row was shown in what the gradient is of
};

/// How the gradient of a row changes it. Immutable and thread-safe.
class RowRule {
 public:
  virtual ~RowRule() = default;
  /// "adagrad".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Returns how many floats a row of `dim` weights keeps beside them.
  [[nodiscard]] virtual size_t state_size(size_t dim) const = 0;
  /// Writes the state of a new row.
  virtual void begin(std::span<float> state) const = 0;
  /// Updates rows of `dim` weights, each once, at the learning rate `lr`.
  virtual void update(std::span<const RowUpdate> rows, size_t dim, double lr) const = 0;
};

/// Weights are kept in [low, high]; by default everywhere.
struct WeightBounds {
  float low = -3.4028234e38F;
  float high = 3.4028234e38F;
};

// The rules of Paddle's tables. Source: paddle/fluid/distributed/ps/table/sparse_sgd_rule.cc of
// Paddle 3.3.1.

/// w -= lr·g.
struct NaiveOptions {
  WeightBounds bounds{};
};
[[nodiscard]] std::shared_ptr<const RowRule> naive(const NaiveOptions& options = {});

struct AdagradRowOptions {
  float initial_g2sum = 3;  ///< g₀, Paddle's `sparse_initial_g2sum`
  WeightBounds bounds{};
};
/// w -= lr·s·√(g₀/(g₀+G)) with s = g/shows; then G += mean(s²). One G for a row.
[[nodiscard]] std::shared_ptr<const RowRule> adagrad(const AdagradRowOptions& options = {});
/// The same with one G for each weight.
[[nodiscard]] std::shared_ptr<const RowRule> std_adagrad(const AdagradRowOptions& options = {});

struct AdamRowOptions {
  float beta1 = 0.9F;
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  WeightBounds bounds{};
};
/// Adam with moments and powers of β in each row, so a row's bias correction counts its own
/// updates.
[[nodiscard]] std::shared_ptr<const RowRule> adam(const AdamRowOptions& options = {});
/// The same with one pair of moments for a row, the means over its weights.
[[nodiscard]] std::shared_ptr<const RowRule> shared_adam(const AdamRowOptions& options = {});

/// Returns the rule of that name with its defaults. Errors: UsageError that lists the names.
[[nodiscard]] std::shared_ptr<const RowRule> row_rule(std::string_view name);

}  // namespace argosy::ps
