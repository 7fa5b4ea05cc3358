#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

namespace argosy::train::testing {

/// The same training each time: an optimizer with state, a schedule by updates, an average.
inline Model adam_model(const SmallNet& net) {
  optim::Adam optimizer(net, {.lr = 0.05});
  Model model(net);
  model.prepare(optimizer,
                loss::CrossEntropy(),
                {metrics::Accuracy()},
                {.schedule = optim::per_step(optim::CosineAnnealingLR(optimizer, {.t_max = 40})),
                 .ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
  return model;
}

inline std::string hash(const SmallNet& net) {
  return checkpoint::weights_hash(engine::state_dict(net));
}

inline FitOptions options_in(const std::string& folder) {
  return {.batch_size = 4,
          .epochs = 3,
          .data = {.seed = 5},
          .checkpoint = {.dir = folder, .on_signal = OnSignal::kSaveAndReturn},
          .log = {.verbose = 0}};
}

/// Samples of each update.
struct Samples : Callback {
  std::vector<int64_t> of_updates{};
  void on_train_batch_end(const Step& step) override {
    if (step.updates) {
      of_updates.push_back(step.samples);
    }
  }
};

}  // namespace argosy::train::testing
