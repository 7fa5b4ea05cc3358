#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/optim/lr_scheduler.h"
#include "argosy/optim/optimizer.h"

namespace torch::nn {
class Module;
}

/// Reads the states of optimizers and schedules from trainings that PyTorch and Paddle saved, to
/// continue them here.
///
///     // torch.save({"model": …, "optimizer": …, "lr_scheduler": …, "epoch": 3}, "a.pth")
///     checkpoint::load_weights(net, "a.pth", {.key = "model"});
///     optimizer.load_state_dict(checkpoint::read_optimizer_state("a.pth", optimizer));
///     schedule.load_state_dict(
///         checkpoint::read_schedule_state("a.pth", schedule.state_dict()));
///     int64_t epoch = checkpoint::read_epoch("a.pth");
///
///     // paddle.save(net.state_dict(), "a.pdparams"); paddle.save(adam.state_dict(), "a.pdopt")
///     checkpoint::load_weights(net, "a.pdparams", {}, {.strict = false});
///     optimizer.load_state_dict(checkpoint::read_optimizer_state(
///         "a.pdopt", optimizer, {.weights = "a.pdparams", .module = net.get()}));
namespace argosy::checkpoint {

struct OtherStateOptions {
  /// The key of the state in a file by torch.save. Empty: "optimizer", and for a schedule
  /// "lr_scheduler" or "scheduler". A file that is the state itself needs no key.
  std::string key{};
  /// For a .pdopt: the .pdparams that was saved with it. Only that file says which parameter has
  /// which of Paddle's names ("linear_0.w_0").
  std::string weights{};
  /// For a .pdopt: the model, which knows whose weights Paddle keeps transposed.
  const torch::nn::Module* module = nullptr;
  /// For a .pdopt: turns the file's names into the model's, as ReadWeightsOptions::renames does.
  std::vector<Rename> renames{};
  /// For a .pdopt by Adam: Paddle saves powers of the betas instead of the number of steps.
  double beta1 = 0.9;
  double beta2 = 0.999;
};

/// Returns the state for `optimizer.load_state_dict()`. The optimizer must be of the same kind and
/// have the same parameters. PyTorch numbers parameters in the order of its groups, so `optimizer`
/// must have groups of the same parameters in the same order. The state includes the learning
/// rates, but no other options.
/// Errors: CheckpointError for another kind of file, another number of groups or parameters, or a
/// parameter that the file does not name.
/// load_state_dict() refuses a state that this kind of optimizer does not use.
[[nodiscard]] optim::OptimizerState read_optimizer_state(const std::string& path,
                                                         const optim::Optimizer& optimizer,
                                                         const OtherStateOptions& options = {});

/// Returns the state for a schedule's load_state_dict(). `like` is the schedule's current state,
/// because Paddle's files lack the base rates. The files do not say which schedule it was.
/// Errors: CheckpointError for another kind of file.
[[nodiscard]] optim::LRSchedulerState read_schedule_state(const std::string& path,
                                                          const optim::LRSchedulerState& like,
                                                          const OtherStateOptions& options = {});

/// Returns an integer that a file by torch.save holds beside the states.
/// Errors: CheckpointError if there is no such number.
[[nodiscard]] int64_t read_epoch(const std::string& path, const std::string& key = "epoch");

}  // namespace argosy::checkpoint
