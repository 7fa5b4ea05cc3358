#include "argosy/train/training_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/train/core.h"
#include "argosy/train/step_figures.h"

namespace argosy::train {
namespace {

/// What loggers write beside the metrics: columns, fields and tags of these names.
constexpr std::array kReserved{"loss",
                               "lr",
                               "loss_scale",
                               "samples_per_second",
                               "images_per_second",
                               "input_wait",
                               "epoch",
                               "step",
                               "seconds",
                               "time",
                               "split"};

}  // namespace

TrainingStep::TrainingStep(detail::Core& core,
                           Model& model,
                           detail::StepFigures& figures,
                           const Tensors& batch,
                           const Place& place)
    : core_(core), model_(model), figures_(figures), batch_(core.here(batch)), place_(place) {}

std::span<const at::Tensor> TrainingStep::inputs() const {
  return std::span(batch_).first(std::min(batch_.size(), core_.network.inputs));
}

std::span<const at::Tensor> TrainingStep::labels() const {
  return std::span(batch_).subspan(std::min(batch_.size(), core_.network.first_label));
}

Tensors TrainingStep::forward() {
  return forward({inputs().begin(), inputs().end()});
}

Tensors TrainingStep::forward(const Tensors& inputs) {
  ARGOSY_CHECK(inputs.size() == core_.network.inputs,
               "train.training_step",
               "step.forward() got {} tensor{}, the network's forward takes {}",
               inputs.size(),
               inputs.size() == 1 ? "" : "s",
               core_.network.inputs);
  ran_network_ = true;
  return core_.forward(core_.here(inputs));
}

at::Tensor TrainingStep::loss(const Tensors& outputs) {
  core_.check_prepared("train.training_step");
  ARGOSY_CHECK(!labels().empty() && !outputs.empty(),
               "train.training_step",
               "step.loss() needs an output and a label: the batch has {} label{}",
               labels().size(),
               labels().size() == 1 ? "" : "s");
  const Tensors targets(labels().begin(), labels().end());
  at::Tensor mean = core_.loss_of(outputs, targets).mean;
  core_.update_metrics(outputs, targets);
  return mean;
}

void TrainingStep::log(std::string_view name, double value) {
  std::vector<std::string> reserved = core_.metric_names();
  reserved.insert(reserved.end(), kReserved.begin(), kReserved.end());
  const bool of_a_split = name.starts_with("eval_") || name.starts_with("train_");
  ARGOSY_CHECK(!name.empty() && !of_a_split &&
                   std::find(reserved.begin(), reserved.end(), name) == reserved.end(),
               "train.training_step",
               "step.log(\"{}\"): fit() has a figure of this name, or the name is empty. Take "
               "another one: reserved are {} and names that begin with eval_ or train_.",
               name,
               fmt::join(reserved, ", "));
  figures_.add(name, value, static_cast<double>(detail::samples_in(batch_)));
}

void TrainingStep::log(std::string_view name, const at::Tensor& value) {
  ARGOSY_CHECK(value.defined() && value.numel() == 1,
               "train.training_step",
               "step.log(\"{}\") takes a single number: take .mean() of the tensor",
               name);
  log(name, value.item<double>());
}

}  // namespace argosy::train
