#include "argosy/optim/rmsprop.h"

#include <fmt/format.h>

#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/base/check.h"
#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/kernels/rmsprop.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {
namespace {

class RmspropRule final : public Rule {
 public:
  explicit RmspropRule(const RMSPropOptions& options) : options_(options) {
    ARGOSY_CHECK(options.alpha >= 0 && options.alpha <= 1,
                 "optim.RMSProp",
                 "alpha must be in [0, 1], got {}",
                 options.alpha);
    check_not_negative(name(), "eps", options.eps);
    check_not_negative(name(), "momentum", options.momentum);
    if (options.momentum > 0) {
      states_.emplace_back("momentum_buffer");
    }
    if (options.centered) {
      states_.emplace_back("grad_avg");
    }
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "RMSProp"; }
  [[nodiscard]] Choices choices() const override {
    return {{"alpha", fmt::format("{}", options_.alpha)},
            {"eps", fmt::format("{}", options_.eps)},
            {"momentum", fmt::format("{}", options_.momentum)},
            {"centered", fmt::format("{}", options_.centered)},
            {"form", options_.form == RMSPropForm::kPaddle ? "Paddle" : "PyTorch"}};
  }
  [[nodiscard]] const std::vector<std::string>& state_names() const noexcept override {
    return states_;
  }

  void update(const MemoryRange& range, const Update& update) const noexcept override {
    const kernels::RmspropTerms terms = terms_of(update);
    range.precision == Precision::kF32 ? run<float>(terms, range) : run<double>(terms, range);
  }

  void update_tensors(const TensorRanges& ranges, const Update& update) const override {
    const kernels::RmspropTerms terms = terms_of(update);
    const double weight = 1 - terms.alpha;
    const TensorList g = effective(ranges, terms.gradient);
    const TensorList& v = ranges.states[0];
    v.mul_(terms.alpha).add_(g.mul(g).mul_(weight));
    TensorList spread = v;
    if (options_.centered) {
      const TensorList& m = ranges.states.back();
      m.add_(g.sub(m).mul_(weight));
      spread = v.sub(m.mul(m));
    }
    TensorList step =
        g.mul(terms.inner).div_(spread.add(terms.eps_inside).sqrt_().add_(terms.eps_outside));
    if (options_.momentum > 0) {
      step = ranges.states[1].mul_(terms.momentum).add_(step);
    }
    ranges.params.sub_(step.mul(terms.outer));
  }

 private:
  [[nodiscard]] kernels::RmspropTerms terms_of(const Update& update) const noexcept {
    const bool paddle = options_.form == RMSPropForm::kPaddle;
    kernels::RmspropTerms terms;
    terms.gradient = gradient_terms(update, BareDecay::kL2);
    terms.alpha = options_.alpha;
    terms.eps_inside = paddle ? options_.eps : 0;
    terms.eps_outside = paddle ? 0 : options_.eps;
    terms.momentum = options_.momentum;
    terms.inner = paddle ? update.lr : 1;
    terms.outer = paddle ? 1 : update.lr;
    return terms;
  }

  template <typename T>
  void run(const kernels::RmspropTerms& terms, const MemoryRange& range) const noexcept {
    const bool momentum = options_.momentum > 0;
    kernels::rmsprop(terms,
                     static_cast<T*>(range.param),
                     static_cast<const T*>(range.grad),
                     static_cast<T*>(range.states[0]),
                     momentum ? static_cast<T*>(range.states[1]) : nullptr,
                     options_.centered ? static_cast<T*>(range.states[momentum ? 2 : 1]) : nullptr,
                     range.count);
  }

  RMSPropOptions options_;
  std::vector<std::string> states_{"square_avg"};
};

}  // namespace

RMSProp::RMSProp(const engine::NamedTensors& parameters,
                 const RMSPropOptions& options,
                 const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<RmspropRule>(options), parameters, common(options), groups)) {}

}  // namespace argosy::optim
