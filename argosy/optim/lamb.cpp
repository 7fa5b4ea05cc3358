#include "argosy/optim/lamb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include <ATen/core/Tensor.h>

#include "argosy/base/check.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/kernels/lamb.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {
namespace {

class LambRule final : public Rule {
 public:
  explicit LambRule(const LambOptions& options)
      : betas_(options.betas), eps_(options.eps), always_adapt_(options.always_adapt) {
    check_betas(name(), betas_);
    check_not_negative(name(), "eps", eps_);
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "Lamb"; }
  [[nodiscard]] Choices choices() const override {
    return {{"betas", fmt::format("{}", fmt::join(betas_, ", "))},
            {"eps", fmt::format("{}", eps_)},
            {"always_adapt", fmt::format("{}", always_adapt_)}};
  }
  [[nodiscard]] const std::vector<std::string>& state_names() const noexcept override {
    return states_;
  }
  [[nodiscard]] bool needs_whole_parameter() const noexcept override { return true; }

  void check_decay(const WeightDecay& decay) const override {
    Rule::check_decay(decay);
    ARGOSY_CHECK(decay.kind == WeightDecay::Kind::kNumber,
                 "optim.Lamb",
                 "weight_decay must be a number, for Lamb decouples it from the gradient. Use Adam "
                 "for L1Decay and L2Decay.");
  }

  [[nodiscard]] kernels::ExactSums prepare(const MemoryRange& range,
                                           const Update& update) const noexcept override {
    return range.precision == Precision::kF32 ? averages<float>(range, update)
                                              : averages<double>(range, update);
  }

  void update(const MemoryRange& range, const Update& update) const noexcept override {
    const double size = step_size(update, update.sums);
    range.precision == Precision::kF32 ? run<float>(range, update, size)
                                       : run<double>(range, update, size);
  }

  [[nodiscard]] std::vector<kernels::ExactSums> prepare_tensors(
      const TensorRanges& ranges, const Update& update) const override {
    const kernels::LambTerms of = terms(update);
    const TensorList g = effective(ranges, of.gradient);
    const TensorList &m = ranges.states[0], &v = ranges.states[1];
    m.mul_(of.beta1).add_(g.mul(1 - of.beta1));
    v.mul_(of.beta2).add_(g.mul(g).mul_(1 - of.beta2));
    return sums_of_squares(ranges.params, direction(ranges, of));
  }

  void update_tensors(const TensorRanges& ranges, const Update& update) const override {
    std::vector<double> sizes;
    for (const kernels::Sums& sums : ranges.sums) {
      sizes.push_back(step_size(update, sums));
    }
    ranges.params.sub_(direction(ranges, terms(update)).mul_(sizes));
  }

 private:
  [[nodiscard]] double step_size(const Update& update, const kernels::Sums& sums) const noexcept {
    const double own = std::sqrt(sums.param), step = std::sqrt(sums.update);
    const bool adapts = update.decay.coeff > 0 || always_adapt_;
    return update.lr * (adapts && own > 0 && step > 0 ? own / step : 1);
  }

  static TensorList direction(const TensorRanges& ranges, const kernels::LambTerms& terms) {
    const TensorList spread = ranges.states[1].div(terms.correction2).sqrt_().add_(terms.eps);
    return ranges.states[0]
        .div(terms.correction1)
        .div_(spread)
        .add_(ranges.params.mul(terms.decay));
  }

  [[nodiscard]] kernels::LambTerms terms(const Update& update) const noexcept {
    const auto step = static_cast<double>(update.step);
    kernels::LambTerms terms;
    terms.gradient = gradient_terms(update, BareDecay::kOwn);
    terms.beta1 = betas_[0];
    terms.beta2 = betas_[1];
    terms.eps = eps_;
    terms.correction1 = 1 - std::pow(betas_[0], step);
    terms.correction2 = 1 - std::pow(betas_[1], step);
    terms.decay = update.decay.coeff;
    return terms;
  }

  template <typename T>
  [[nodiscard]] kernels::ExactSums averages(const MemoryRange& range,
                                            const Update& update) const noexcept {
    return kernels::lamb_averages(terms(update),
                                  static_cast<const T*>(range.param),
                                  static_cast<const T*>(range.grad),
                                  static_cast<T*>(range.states[0]),
                                  static_cast<T*>(range.states[1]),
                                  range.count);
  }

  template <typename T>
  void run(const MemoryRange& range, const Update& update, double step_size) const noexcept {
    kernels::lamb_update(terms(update),
                         step_size,
                         static_cast<T*>(range.param),
                         static_cast<const T*>(range.states[0]),
                         static_cast<const T*>(range.states[1]),
                         range.count);
  }

  std::vector<std::string> states_{"exp_avg", "exp_avg_sq"};
  std::array<double, 2> betas_;
  double eps_;
  bool always_adapt_;
};

DecayFilter all_but(const std::function<bool(const std::string&)>& excluded) {
  if (excluded == nullptr) {
    return {};
  }
  return [excluded](const std::string& name) { return !excluded(name); };
}

}  // namespace

Lamb::Lamb(const engine::NamedTensors& parameters,
           const LambOptions& options,
           const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<LambRule>(options),
          parameters,
          {.lr = options.lr,
           .weight_decay = options.weight_decay,
           .grad_clip = options.grad_clip,
           .apply_decay_param_fun = all_but(options.exclude_from_weight_decay_fn)},
          groups)) {}

}  // namespace argosy::optim
