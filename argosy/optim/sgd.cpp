#include "argosy/optim/sgd.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/base/check.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/kernels/sgd.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {
namespace {

class SgdRule final : public Rule {
 public:
  SgdRule(std::string name, double momentum, double dampening, bool nesterov)
      : name_(std::move(name)), momentum_(momentum), dampening_(dampening), nesterov_(nesterov) {
    const std::string where = fmt::format("optim.{}", name_);
    ARGOSY_CHECK(std::isfinite(momentum) && momentum >= 0,
                 where,
                 "momentum must be a number >= 0, got {}",
                 momentum);
    ARGOSY_CHECK(std::isfinite(dampening), where, "dampening must be finite, got {}", dampening);
    ARGOSY_CHECK(!nesterov || (momentum > 0 && dampening == 0),
                 where,
                 "nesterov wants momentum > 0 and dampening = 0, got momentum {} and dampening {}",
                 momentum,
                 dampening);
    if (momentum_ > 0) {
      states_.emplace_back("momentum_buffer");
    }
  }

  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  [[nodiscard]] RuleNumbers numbers() const noexcept override {
    return {.momentum = momentum_, .variant = nesterov_};
  }
  [[nodiscard]] Choices choices() const override {
    return {{"momentum", fmt::format("{}", momentum_)},
            {"dampening", fmt::format("{}", dampening_)},
            {"nesterov", fmt::format("{}", nesterov_)}};
  }
  [[nodiscard]] const std::vector<std::string>& state_names() const noexcept override {
    return states_;
  }

  void update(const MemoryRange& range, const Update& update) const noexcept override {
    const kernels::SgdTerms terms = terms_of(update);
    range.precision == Precision::kF32 ? run<float>(terms, range) : run<double>(terms, range);
  }

  void update_tensors(const TensorRanges& ranges, const Update& update) const override {
    const kernels::SgdTerms terms = terms_of(update);
    TensorList g = effective(ranges, terms.gradient);
    if (!states_.empty()) {
      const TensorList& b = ranges.states[0];
      b.mul_(terms.momentum).add_(g.mul(terms.weight));
      g = terms.nesterov ? g.add(b.mul(terms.look_ahead)) : b;
    }
    ranges.params.sub_(g.mul(terms.lr));
  }

 private:
  [[nodiscard]] kernels::SgdTerms terms_of(const Update& update) const noexcept {
    kernels::SgdTerms terms;
    terms.gradient = gradient_terms(update, BareDecay::kL2);
    terms.lr = update.lr;
    const bool first = update.step == 1;  // the buffer starts as the gradient, undampened
    terms.momentum = first ? 0 : momentum_;
    terms.weight = first ? 1 : 1 - dampening_;
    terms.look_ahead = momentum_;
    terms.nesterov = nesterov_;
    return terms;
  }

  template <typename T>
  void run(const kernels::SgdTerms& terms, const MemoryRange& range) const noexcept {
    kernels::sgd(terms,
                 static_cast<T*>(range.param),
                 static_cast<const T*>(range.grad),
                 states_.empty() ? nullptr : static_cast<T*>(range.states[0]),
                 range.count);
  }

  std::string name_;
  std::vector<std::string> states_;
  double momentum_;
  double dampening_;
  bool nesterov_;
};

}  // namespace

SGD::SGD(const engine::NamedTensors& parameters,
         const SGDOptions& options,
         const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<SgdRule>("SGD", options.momentum, options.dampening, options.nesterov),
          parameters,
          common(options),
          groups)) {}

Momentum::Momentum(const engine::NamedTensors& parameters,
                   const MomentumOptions& options,
                   const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<SgdRule>("Momentum", options.momentum, 0.0, options.nesterov),
          parameters,
          common(options),
          groups)) {}

}  // namespace argosy::optim
