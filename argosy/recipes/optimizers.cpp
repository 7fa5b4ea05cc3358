#include "argosy/recipes/optimizers.h"

#include <array>
#include <string>
#include <utility>

#include "argosy/optim/optim.h"

namespace argosy::recipes {
namespace {

using Groups = std::vector<optim::ParamGroup>;

/// Those that do not decay, apart.
Groups groups_of(const OptimizerInputs& inputs, const Values& values) {
  if (values.word("decay", {"all", "weights"}) == "all") {
    return {};
  }
  optim::ParamGroup still{.weight_decay = 0.0};
  for (const auto& [name, parameter] : inputs.parameters) {
    if (parameter.dim() < 2) {
      still.params.push_back(parameter);
    }
  }
  return still.params.empty() ? Groups() : Groups{std::move(still)};
}

optim::WeightDecay decay_of(const OptimizerInputs& inputs, const Values& values) {
  if (values.word("regularizer", {"l2", "l1"}) == "l1") {
    return optim::L1Decay(inputs.weight_decay);
  }
  return optim::L2Decay(inputs.weight_decay);
}

std::array<double, 2> betas_of(const Values& values) {
  const std::vector<double> both = values.numbers("betas", 2);
  return {both[0], both[1]};
}

// Options that several have.
const OptionRow kDecay{"decay", "all", "what decays: all, or weights (no biases, no norms)"};
const OptionRow kRegularizer{"regularizer", "l2", "penalty of the weight decay: l2, l1"};
const OptionRow kMomentum{"momentum", "0.9", "share of the last step"};
const OptionRow kNesterov{"nesterov", "no", "looks one step ahead"};
const OptionRow kBetas{"betas", "0.9/0.999", "decay of the two averages"};
const OptionRow kAmsgrad{"amsgrad", "no", "the largest average so far"};
OptionRow eps(std::string fallback) {
  return {"eps", std::move(fallback), "added to the denominator"};
}

OptimizerEntry sgd() {
  return {.row = {"sgd",
                  "stochastic gradient descent, PyTorch's",
                  {{"momentum", "0", "share of the last step"},
                   {"dampening", "0", "of the gradient in the momentum"},
                   kNesterov,
                   kRegularizer,
                   kDecay}},
          .lr = 0.01,
          .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
            return optim::SGD(inputs.parameters,
                              {.lr = inputs.lr,
                               .momentum = values.number("momentum"),
                               .dampening = values.number("dampening"),
                               .weight_decay = decay_of(inputs, values),
                               .nesterov = values.flag("nesterov"),
                               .grad_clip = inputs.clip},
                              groups_of(inputs, values));
          }};
}

OptimizerEntry momentum() {
  return {.row = {"momentum",
                  "SGD with momentum, Paddle's",
                  {kMomentum, kNesterov, kRegularizer, kDecay}},
          .lr = 0.01,
          .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
            return optim::Momentum(inputs.parameters,
                                   {.lr = inputs.lr,
                                    .momentum = values.number("momentum"),
                                    .nesterov = values.flag("nesterov"),
                                    .weight_decay = decay_of(inputs, values),
                                    .grad_clip = inputs.clip},
                                   groups_of(inputs, values));
          }};
}

OptimizerEntry adam() {
  return {.row = {"adam", "Adam", {kBetas, eps("1e-8"), kAmsgrad, kRegularizer, kDecay}},
          .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
            return optim::Adam(inputs.parameters,
                               {.lr = inputs.lr,
                                .betas = betas_of(values),
                                .eps = values.number("eps"),
                                .weight_decay = decay_of(inputs, values),
                                .amsgrad = values.flag("amsgrad"),
                                .grad_clip = inputs.clip},
                               groups_of(inputs, values));
          }};
}

OptimizerEntry adamw() {
  return {
      .row = {"adamw", "Adam with decoupled weight decay", {kBetas, eps("1e-8"), kAmsgrad, kDecay}},
      .weight_decay = 0.01,
      .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
        return optim::AdamW(inputs.parameters,
                            {.lr = inputs.lr,
                             .betas = betas_of(values),
                             .eps = values.number("eps"),
                             .weight_decay = inputs.weight_decay,
                             .amsgrad = values.flag("amsgrad"),
                             .grad_clip = inputs.clip},
                            groups_of(inputs, values));
      }};
}

OptimizerEntry rmsprop() {
  return {.row = {"rmsprop",
                  "the gradient over the root of its mean square",
                  {{"alpha", "0.99", "decay of the averages"},
                   eps("1e-8"),
                   {"momentum", "0", "share of the last step"},
                   {"centered", "no", "by the gradient's variance"},
                   {"form", "torch", "whose formula: torch, paddle"},
                   kRegularizer,
                   kDecay}},
          .lr = 0.01,
          .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
            return optim::RMSProp(inputs.parameters,
                                  {.lr = inputs.lr,
                                   .alpha = values.number("alpha"),
                                   .eps = values.number("eps"),
                                   .weight_decay = decay_of(inputs, values),
                                   .momentum = values.number("momentum"),
                                   .centered = values.flag("centered"),
                                   .form = values.word("form", {"torch", "paddle"}) == "torch"
                                               ? optim::RMSPropForm::kTorch
                                               : optim::RMSPropForm::kPaddle,
                                   .grad_clip = inputs.clip},
                                  groups_of(inputs, values));
          }};
}

OptimizerEntry adagrad() {
  return {.row = {"adagrad",
                  "the gradient over the root of the sum of its squares",
                  {{"lr_decay", "0", "the rate of step t is lr / (1 + (t - 1) lr_decay)"},
                   {"initial_accumulator_value", "0", "what the sum starts from"},
                   eps("1e-10"),
                   kRegularizer,
                   kDecay}},
          .lr = 0.01,
          .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
            return optim::Adagrad(
                inputs.parameters,
                {.lr = inputs.lr,
                 .lr_decay = values.number("lr_decay"),
                 .weight_decay = decay_of(inputs, values),
                 .initial_accumulator_value = values.number("initial_accumulator_value"),
                 .eps = values.number("eps"),
                 .grad_clip = inputs.clip},
                groups_of(inputs, values));
          }};
}

OptimizerEntry lamb() {
  return {
      .row = {"lamb",
              "Adam for large batches: steps as long as the parameter",
              {kBetas, eps("1e-6"), {"always_adapt", "no", "also what does not decay"}, kDecay}},
      .weight_decay = 0.01,
      .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
        return optim::Lamb(inputs.parameters,
                           {.lr = inputs.lr,
                            .betas = betas_of(values),
                            .eps = values.number("eps"),
                            .weight_decay = inputs.weight_decay,
                            .always_adapt = values.flag("always_adapt"),
                            .grad_clip = inputs.clip},
                           groups_of(inputs, values));
      }};
}

OptimizerEntry lars() {
  return {.row = {"lars",
                  "momentum for large batches: a rate for each parameter",
                  {kMomentum, {"lars_coeff", "1e-3", "trust coefficient"}, eps("0"), kDecay}},
          .lr = 0.1,
          .weight_decay = 5e-4,
          .build = [](const OptimizerInputs& inputs, const Values& values) -> optim::Optimizer {
            return optim::Lars(inputs.parameters,
                               {.lr = inputs.lr,
                                .momentum = values.number("momentum"),
                                .lars_coeff = values.number("lars_coeff"),
                                .weight_decay = inputs.weight_decay,
                                .eps = values.number("eps"),
                                .grad_clip = inputs.clip},
                               groups_of(inputs, values));
          }};
}

}  // namespace

const std::vector<OptimizerEntry>& optimizers() {
  static const std::vector<OptimizerEntry> all{
      sgd(), momentum(), adam(), adamw(), rmsprop(), adagrad(), lamb(), lars()};
  return all;
}

}  // namespace argosy::recipes
