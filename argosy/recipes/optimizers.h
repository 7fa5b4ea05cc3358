#pragma once

#include <functional>
#include <vector>

#include "argosy/engine/named.h"
#include "argosy/optim/clip.h"
#include "argosy/optim/optimizer.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"

namespace argosy::recipes {

/// The inputs that all optimizers get.
struct OptimizerInputs {
  engine::NamedTensors parameters{};
  double lr = 0;
  double weight_decay = 0;
  optim::GradClip clip{};
};

struct OptimizerEntry {
  TableRow row{};
  double lr = 1e-3;  ///< used unless the user names one
  double weight_decay = 0;
  std::function<optim::Optimizer(const OptimizerInputs& inputs, const Values& values)> build{};
};

/// Returns all optimizers by name. Each has the option `decay`: "all" decays all parameters;
/// "weights" decays only those with two dimensions or more, so not biases and norms.
[[nodiscard]] const std::vector<OptimizerEntry>& optimizers();

}  // namespace argosy::recipes
