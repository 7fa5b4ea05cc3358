#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/optim/decay.h"
#include "argosy/optim/kernels/gradient.h"
#include "argosy/optim/kernels/squares.h"
#include "argosy/optim/optimizer.h"
#include "argosy/optim/tensor_range.h"

namespace argosy::optim {

/// Precision of a parameter, its gradient and its state.
enum class Precision { kF32, kF64 };

/// Consecutive elements of a parameter, wherever they lie: in a tensor or in a reduction bucket.
struct MemoryRange {
  static constexpr std::size_t kMaxStates = 3;
  Precision precision = Precision::kF32;
  void* param = nullptr;
  const void* grad = nullptr;
  std::array<void*, kMaxStates> states{};  ///< in the order of Rule::state_names()
  std::size_t count = 0;

  /// Returns the `length` elements from element `begin` on.
  [[nodiscard]] MemoryRange sub(std::size_t begin, std::size_t length) const;
};
[[nodiscard]] constexpr std::size_t item_bytes(Precision precision) {
  return precision == Precision::kF32 ? 4 : 8;
}

/// The inputs of one update besides memory.
struct Update {
  double lr = 0;
  int64_t step = 1;  ///< of this parameter, counted from 1
  WeightDecay decay{};
  double grad_scale = 1;
  double grad_limit = 0;  ///< 0: none
  kernels::Sums sums{};   ///< of the whole parameter, where the rule needs it
};

/// The numbers of a rule that are kept when another rule replaces it.
struct RuleNumbers {
  double momentum = 0;
  std::array<double, 2> betas{};
  double eps = 0;
  bool variant = false;  ///< nesterov, amsgrad: only this rule can do it
};

/// The formula of an optimizer, apart from tensors, groups and threads. Immutable and thread-safe.
///
/// update() over any split of a parameter gives the same bits as over the whole, so a rank can
/// update only its share of a bucket. A rule that compares norms of a whole parameter (Lamb, Lars)
/// says so; its steps take two passes, between which processes add up what each has of the norms.
class Rule {
 public:
  virtual ~Rule() = default;
  /// "Adam": for messages and state dicts.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual RuleNumbers numbers() const noexcept { return {}; }
  /// The options beside rate, decay and clipping, for records of a run: {{"momentum", "0.9"}}.
  [[nodiscard]] virtual Choices choices() const = 0;
  /// Names as in PyTorch; each state has the parameter's shape and starts as zeros.
  [[nodiscard]] virtual const std::vector<std::string>& state_names() const noexcept = 0;
  /// Errors: UsageError for a weight decay that has no meaning for this rule.
  virtual void check_decay(const WeightDecay& decay) const;
  virtual void update(const MemoryRange& range, const Update& update) const noexcept = 0;
  /// True if update() needs `update.sums`: the sum of prepare()'s results for all pieces of the
  /// parameter, of all processes that have a part of it.
  [[nodiscard]] virtual bool needs_whole_parameter() const noexcept { return false; }
  /// Does the first pass, over each piece once, which begins at a whole kernels::kSquaresBlock of
  /// the parameter. It may write the states, not the parameter.
  [[nodiscard]] virtual kernels::ExactSums prepare(const MemoryRange& /*range*/,
                                                   const Update& /*update*/) const noexcept {
    return {};
  }
  /// The same two for memory that no kernel reaches, and for parameters that are updated alike:
  /// `update` has no sums, but `ranges` where the rule needs them. A device that rounds as the CPU
  /// does gives update()'s bits.
  virtual void update_tensors(const TensorRanges& ranges, const Update& update) const = 0;
  [[nodiscard]] virtual std::vector<kernels::ExactSums> prepare_tensors(
      const TensorRanges& /*ranges*/, const Update& /*update*/) const {
    return {};
  }
};

/// Errors: UsageError `[optim.X] NAME must be a number >= 0, got …`.
void check_not_negative(std::string_view rule, std::string_view name, double value);
/// Errors: UsageError `[optim.X] betas[I] must be in [0, 1), got …`.
void check_betas(std::string_view rule, const std::array<double, 2>& betas);

/// The meaning of a weight decay that is a bare number.
enum class BareDecay {
  kL2,  ///< as L2Decay: a part of the gradient
  kOwn  ///< the rule itself applies it
};

/// The part of an update that all rules share.
[[nodiscard]] kernels::GradientTerms gradient_terms(const Update& update, BareDecay meaning);

}  // namespace argosy::optim
