#include "argosy/optim/lars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <ATen/core/Tensor.h>

#include "argosy/base/check.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/kernels/lars.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {
namespace {

class LarsRule final : public Rule {
 public:
  explicit LarsRule(const LarsOptions& options)
      : momentum_(options.momentum), coeff_(options.lars_coeff), eps_(options.eps) {
    check_not_negative(name(), "momentum", momentum_);
    check_not_negative(name(), "lars_coeff", coeff_);
    check_not_negative(name(), "eps", eps_);
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "Lars"; }
  [[nodiscard]] Choices choices() const override {
    return {{"momentum", fmt::format("{}", momentum_)},
            {"lars_coeff", fmt::format("{}", coeff_)},
            {"eps", fmt::format("{}", eps_)}};
  }
  [[nodiscard]] const std::vector<std::string>& state_names() const noexcept override {
    return states_;
  }
  [[nodiscard]] bool needs_whole_parameter() const noexcept override { return true; }

  void check_decay(const WeightDecay& decay) const override {
    Rule::check_decay(decay);
    ARGOSY_CHECK(
        decay.kind == WeightDecay::Kind::kNumber,
        "optim.Lars",
        "weight_decay must be a number, for Lars scales it with the gradient. Use Momentum "
        "for L1Decay and L2Decay.");
  }

  [[nodiscard]] kernels::ExactSums prepare(const MemoryRange& range,
                                           const Update& update) const noexcept override {
    return range.precision == Precision::kF32 ? norms<float>(range, update)
                                              : norms<double>(range, update);
  }

  void update(const MemoryRange& range, const Update& update) const noexcept override {
    const kernels::LarsTerms terms = terms_of(update, update.sums);
    range.precision == Precision::kF32 ? run<float>(terms, range) : run<double>(terms, range);
  }

  [[nodiscard]] std::vector<kernels::ExactSums> prepare_tensors(
      const TensorRanges& ranges, const Update& update) const override {
    return sums_of_squares(ranges.params,
                           effective(ranges, gradient_terms(update, BareDecay::kOwn)));
  }

  void update_tensors(const TensorRanges& ranges, const Update& update) const override {
    const kernels::LarsTerms terms = terms_of(update, {});
    std::vector<double> sizes;
    for (const kernels::Sums& sums : ranges.sums) {
      sizes.push_back(terms_of(update, sums).step_size);
    }
    const TensorList towards =
        effective(ranges, terms.gradient).add(ranges.params.mul(terms.decay)).mul_(sizes);
    ranges.params.sub_(ranges.states[0].mul_(terms.momentum).add_(towards));
  }

 private:
  [[nodiscard]] kernels::LarsTerms terms_of(const Update& update,
                                            const kernels::Sums& sums) const noexcept {
    const double own = std::sqrt(sums.param), grad = std::sqrt(sums.update);
    const double decay = update.decay.coeff;
    kernels::LarsTerms terms;
    terms.gradient = gradient_terms(update, BareDecay::kOwn);
    terms.momentum = momentum_;
    terms.decay = decay;
    terms.step_size = decay > 0 && own > 0 && grad > 0
                          ? update.lr * coeff_ * own / (grad + decay * own + eps_)
                          : update.lr;
    return terms;
  }

  template <typename T>
  static kernels::ExactSums norms(const MemoryRange& range, const Update& update) noexcept {
    return kernels::lars_norms(gradient_terms(update, BareDecay::kOwn),
                               static_cast<const T*>(range.param),
                               static_cast<const T*>(range.grad),
                               range.count);
  }

  template <typename T>
  static void run(const kernels::LarsTerms& terms, const MemoryRange& range) noexcept {
    kernels::lars_update(terms,
                         static_cast<T*>(range.param),
                         static_cast<const T*>(range.grad),
                         static_cast<T*>(range.states[0]),
                         range.count);
  }

  std::vector<std::string> states_{"momentum_buffer"};
  double momentum_;
  double coeff_;
  double eps_;
};

DecayFilter all_but(const std::vector<std::string>& excluded) {
  return [excluded](const std::string& name) {
    return std::ranges::none_of(
        excluded, [&](const std::string& part) { return name.find(part) != std::string::npos; });
  };
}

}  // namespace

Lars::Lars(const engine::NamedTensors& parameters,
           const LarsOptions& options,
           const std::vector<ParamGroup>& groups)
    : Optimizer(
          make_flat_optimizer(std::make_unique<LarsRule>(options),
                              parameters,
                              {.lr = options.lr,
                               .weight_decay = options.weight_decay,
                               .grad_clip = options.grad_clip,
                               .apply_decay_param_fun = all_but(options.exclude_from_weight_decay)},
                              groups)) {}

}  // namespace argosy::optim
