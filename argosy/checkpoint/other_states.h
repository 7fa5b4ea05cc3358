#pragma once

#include <cstdint>
#include <string>

#include "argosy/optim/lr_scheduler.h"
#include "argosy/optim/optimizer.h"

namespace torch::nn {
class Module;
}

/// The states of optimizers and schedules in trainings that PyTorch and Paddle have saved, to
/// continue these here.
///
///     // torch.save({"model": …, "optimizer": …, "lr_scheduler": …, "epoch": 3}, "a.pth")
///     checkpoint::load_weights(net, "a.pth", {.key = "model"});
///     optimizer.load_state_dict(checkpoint::read_optimizer_state("a.pth", optimizer));
///     schedule.load_state_dict(checkpoint::read_schedule_state("a.pth",
///     schedule.state_dict())); int64_t epoch = checkpoint::read_epoch("a.pth");
///
///     // paddle.save(net.state_dict(), "a.pdparams"); paddle.save(adam.state_dict(), "a.pdopt")
///     checkpoint::load_weights(net, "a.pdparams", {}, {.strict = false});
///     optimizer.load_state_dict(checkpoint::read_optimizer_state(
///         "a.pdopt", optimizer, {.weights = "a.pdparams", .module = net.get()}));
namespace argosy::checkpoint {

struct OtherStateOptions {
  /// Where a file by torch.save keeps it. Empty: "optimizer", for a schedule "lr_scheduler" or
  /// "scheduler"; a file that is the state itself needs none.
  std::string key{};
  /// Of a .pdopt: the .pdparams that was saved with it. It alone says which of Paddle's names
  /// ("linear_0.w_0") is which parameter.
  std::string weights{};
  /// Of a .pdopt: the model, which knows whose weights Paddle keeps transposed.
  const torch::nn::Module* module = nullptr;
  /// Of a .pdopt by Adam: Paddle keeps powers of the betas, and no number of steps.
  double beta1 = 0.9;
  double beta2 = 0.999;
};

/// The state for `optimizer.load_state_dict()`, which must be of the same kind and over the same
/// parameters. PyTorch numbers parameters, in the order of its groups: `optimizer` must have groups
/// of the same parameters in the same order. Learning rates come with it, other options do not.
/// Errors: CheckpointError: not such a file; another number of groups or parameters; a state that
///   this kind of optimizer has no use for, from load_state_dict().
[[nodiscard]] optim::OptimizerState read_optimizer_state(const std::string& path,
                                                         const optim::Optimizer& optimizer,
                                                         const OtherStateOptions& options = {});

/// The state for a schedule's load_state_dict(). `like` is its state now: Paddle's files do not say
/// the base rates. Which schedule it was is not in the files either.
/// Errors: CheckpointError: not such a file.
[[nodiscard]] optim::LRSchedulerState read_schedule_state(const std::string& path,
                                                          const optim::LRSchedulerState& like,
                                                          const OtherStateOptions& options = {});

/// A whole number that a file by torch.save holds beside the states.
/// Errors: CheckpointError: there is no such number.
[[nodiscard]] int64_t read_epoch(const std::string& path, const std::string& key = "epoch");

}  // namespace argosy::checkpoint
