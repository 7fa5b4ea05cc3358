#pragma once

#include <functional>
#include <vector>

#include "argosy/engine/named.h"
#include "argosy/optim/clip.h"
#include "argosy/optim/optimizer.h"
#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"

namespace argosy::recipes {

/// What all optimizers are given.
struct OptimizerInputs {
  engine::NamedTensors parameters{};
  double lr = 0;
  double weight_decay = 0;
  optim::GradClip clip{};
};

struct OptimizerEntry {
  Row row{};
  double lr = 1e-3;  ///< unless one is asked for
  double weight_decay = 0;
  std::function<optim::Optimizer(const OptimizerInputs& inputs, const Values& values)> build{};
};

/// All optimizers, by name. Each has the option `decay`: "all" parameters, or "weights" alone, that
/// is none with less than two dimensions (biases and norms).
[[nodiscard]] const std::vector<OptimizerEntry>& optimizers();

}  // namespace argosy::recipes
