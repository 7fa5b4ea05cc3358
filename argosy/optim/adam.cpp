#include "argosy/optim/adam.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/kernels/adam.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {
namespace {

class AdamRule final : public Rule {
 public:
  AdamRule(std::string name, std::array<double, 2> betas, double eps, bool amsgrad, bool decoupled)
      : name_(std::move(name)),
        states_{"exp_avg", "exp_avg_sq"},
        betas_(betas),
        eps_(eps),
        amsgrad_(amsgrad),
        decoupled_(decoupled) {
    check_betas(name_, betas);
    check_not_negative(name_, "eps", eps);
    if (amsgrad_) {
      states_.emplace_back("max_exp_avg_sq");
    }
  }

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] RuleNumbers numbers() const noexcept override {
    return {.betas = betas_, .eps = eps_, .variant = amsgrad_};
  }
  [[nodiscard]] Choices choices() const override {
    return {{"betas", fmt::format("{}", fmt::join(betas_, ", "))},
            {"eps", fmt::format("{}", eps_)},
            {"amsgrad", fmt::format("{}", amsgrad_)}};
  }
  [[nodiscard]] const std::vector<std::string>& state_names() const noexcept override {
    return states_;
  }

  void check_decay(const WeightDecay& decay) const override {
    Rule::check_decay(decay);
    ARGOSY_CHECK(
        !decoupled_ || decay.kind == WeightDecay::Kind::kNumber,
        "optim.AdamW",
        "weight_decay must be a number, for AdamW decouples it from the gradient. Use Adam "
        "for L1Decay and L2Decay.");
  }

  void update(const MemoryRange& range, const Update& update) const noexcept override {
    const kernels::AdamTerms terms = terms_of(update);
    range.precision == Precision::kF32 ? run<float>(terms, range) : run<double>(terms, range);
  }

  void update_tensors(const TensorRanges& ranges, const Update& update) const override {
    const kernels::AdamTerms terms = terms_of(update);
    const TensorList g = effective(ranges, terms.gradient);
    const TensorList &m = ranges.states[0], &v = ranges.states[1];
    const TensorList change = g.sub(m);
    if (terms.beta1 > 0.5) {
      m.add_(change.mul(1 - terms.beta1));
    } else {
      const at::ScalarType type = m.tensors().front().scalar_type();
      m.copy_(g.sub(change.mul(one_minus(1 - terms.beta1, type))));
    }
    v.mul_(terms.beta2).add_(g.mul(g).mul_(1 - terms.beta2));
    if (amsgrad_) {
      ranges.states[2].copy_(ranges.states[2].maximum(v));
    }
    const TensorList denominator =
        ranges.states[amsgrad_ ? 2 : 1].sqrt().div_(terms.correction2).add_(terms.eps);
    ranges.params.mul_(terms.keep).sub_(m.div(denominator).mul_(terms.step_size));
  }

 private:
  /// In the precision of the data, as the kernel takes it.
  static double one_minus(double value, at::ScalarType type) {
    return type == at::kFloat ? 1.0F - static_cast<float>(value) : 1 - value;
  }

  [[nodiscard]] kernels::AdamTerms terms_of(const Update& update) const noexcept {
    const auto step = static_cast<double>(update.step);
    kernels::AdamTerms terms;
    terms.gradient = gradient_terms(update, decoupled_ ? BareDecay::kOwn : BareDecay::kL2);
    terms.beta1 = betas_[0];
    terms.beta2 = betas_[1];
    terms.eps = eps_;
    terms.step_size = update.lr / (1 - std::pow(betas_[0], step));
    terms.correction2 = std::sqrt(1 - std::pow(betas_[1], step));
    terms.keep = decoupled_ ? 1 - update.lr * update.decay.coeff : 1;
    return terms;
  }

  template <typename T>
  void run(const kernels::AdamTerms& terms, const MemoryRange& range) const noexcept {
    kernels::adam(terms,
                  static_cast<T*>(range.param),
                  static_cast<const T*>(range.grad),
                  static_cast<T*>(range.states[0]),
                  static_cast<T*>(range.states[1]),
                  amsgrad_ ? static_cast<T*>(range.states[2]) : nullptr,
                  range.count);
  }

  std::string name_;
  std::vector<std::string> states_;
  std::array<double, 2> betas_;
  double eps_;
  bool amsgrad_;
  bool decoupled_;
};

}  // namespace

Adam::Adam(const engine::NamedTensors& parameters,
           const AdamOptions& options,
           const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<AdamRule>("Adam", options.betas, options.eps, options.amsgrad, false),
          parameters,
          common(options),
          groups)) {}

AdamW::AdamW(const engine::NamedTensors& parameters,
             const AdamWOptions& options,
             const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<AdamRule>("AdamW", options.betas, options.eps, options.amsgrad, true),
          parameters,
          common(options),
          groups)) {}

}  // namespace argosy::optim
