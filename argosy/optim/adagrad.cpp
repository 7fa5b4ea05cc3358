#include "argosy/optim/adagrad.h"

#include <fmt/format.h>

#include <string>

#include <ATen/core/Tensor.h>

#include "argosy/optim/flat_optimizer.h"
#include "argosy/optim/kernels/adagrad.h"
#include "argosy/optim/rule.h"

namespace argosy::optim {
namespace {

class AdagradRule final : public Rule {
 public:
  explicit AdagradRule(const AdagradOptions& options) : options_(options) {
    check_not_negative(name(), "lr_decay", options.lr_decay);
    check_not_negative(name(), "initial_accumulator_value", options.initial_accumulator_value);
    check_not_negative(name(), "eps", options.eps);
  }

  [[nodiscard]] std::string_view name() const noexcept override { return "Adagrad"; }
  [[nodiscard]] Choices choices() const override {
    return {{"lr_decay", fmt::format("{}", options_.lr_decay)},
            {"initial_accumulator_value", fmt::format("{}", options_.initial_accumulator_value)},
            {"eps", fmt::format("{}", options_.eps)}};
  }
  [[nodiscard]] const std::vector<std::string>& state_names() const noexcept override {
    return states_;
  }

  void update(const MemoryRange& range, const Update& update) const noexcept override {
    const kernels::AdagradTerms terms = terms_of(update);
    range.precision == Precision::kF32 ? run<float>(terms, range) : run<double>(terms, range);
  }

  void update_tensors(const TensorRanges& ranges, const Update& update) const override {
    const kernels::AdagradTerms terms = terms_of(update);
    const TensorList g = effective(ranges, terms.gradient);
    const TensorList& sum = ranges.states[0];
    sum.mul_(terms.keep).add_(terms.start).add_(g.mul(g));
    ranges.params.sub_(g.div(sum.sqrt().add_(terms.eps)).mul_(terms.lr));
  }

 private:
  [[nodiscard]] kernels::AdagradTerms terms_of(const Update& update) const noexcept {
    const bool first = update.step == 1;  // states start as zeros: the sum gets its start here
    kernels::AdagradTerms terms;
    terms.gradient = gradient_terms(update, BareDecay::kL2);
    terms.lr = update.lr / (1 + static_cast<double>(update.step - 1) * options_.lr_decay);
    terms.eps = options_.eps;
    terms.keep = first ? 0 : 1;
    terms.start = first ? options_.initial_accumulator_value : 0;
    return terms;
  }

  template <typename T>
  static void run(const kernels::AdagradTerms& terms, const MemoryRange& range) noexcept {
    kernels::adagrad(terms,
                     static_cast<T*>(range.param),
                     static_cast<const T*>(range.grad),
                     static_cast<T*>(range.states[0]),
                     range.count);
  }

  AdagradOptions options_;
  std::vector<std::string> states_{"sum"};
};

}  // namespace

Adagrad::Adagrad(const engine::NamedTensors& parameters,
                 const AdagradOptions& options,
                 const std::vector<ParamGroup>& groups)
    : Optimizer(make_flat_optimizer(
          std::make_unique<AdagradRule>(options), parameters, common(options), groups)) {}

}  // namespace argosy::optim
