#pragma once

#include <memory>
#include <string>

#include "argosy/optim/optimizer.h"
#include "argosy/train/callback.h"

namespace torch::nn {
class Module;
}

namespace argosy::train {

/// Lets the checkpoints of fit() have a second model of the program with its optimizer, and
/// restores both on a resume: the discriminator of a GAN, for example.
///
///     model.fit(train, {.run_dir = "runs/gan", .resume = train::Resume::kAuto,
///                       .callbacks = {train::KeepInCheckpoint(
///                           "discriminator", discriminator.module().ptr(), optimizer)},
///                       .training_step = ...});
///
/// The weights, buffers and optimizer states of rank 0 are saved; they must be equal on all ranks.
/// Errors: CheckpointError from fit() if a checkpoint has another model under this name, or none.
class KeepInCheckpoint final : public Callback {
 public:
  KeepInCheckpoint(std::string name,
                   std::shared_ptr<torch::nn::Module> module,
                   optim::Optimizer optimizer);

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] nlohmann::ordered_json state() const override;
  void load_state(const nlohmann::ordered_json& state) override;
  [[nodiscard]] engine::StateDict tensors() const override;
  void load_tensors(const engine::StateDict& tensors) override;

 private:
  std::string name_;
  std::shared_ptr<torch::nn::Module> module_;
  optim::Optimizer optimizer_;
  std::shared_ptr<nlohmann::ordered_json> loaded_;  // the optimizer's, until its tensors come
};

}  // namespace argosy::train
