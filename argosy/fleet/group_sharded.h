#pragma once

#include <string>

#include "argosy/engine/named.h"
#include "argosy/fleet/fleet.h"
#include "argosy/optim/optimizer.h"

namespace torch::nn {
class Module;
}

/// Files of a model whose parameters ranks divide, in Paddle's words.
namespace argosy::fleet {

namespace detail {
/// For save_group_sharded_model().
void make_folder(const std::string& path);
void save_state(const optim::Optimizer& optimizer, const std::string& path);
/// For load_group_sharded_model(). `optimizer` may be nullptr.
void load_together(const torch::nn::Module& module,
                   const std::string& weights,
                   optim::Optimizer* optimizer,
                   const std::string& state);
}  // namespace detail

/// Writes what group_sharded_parallel() or distributed_model() trains into the folder `output`,
/// which need not exist: `model.pdparams`, which paddle.load() reads, and, given an optimizer, its
/// state as `model.opt.safetensors`, a tensor for each "<parameter>/<state>", with its learning
/// rate as "<parameter>/lr". For other programs, and load_group_sharded_model(): a training of
/// Argosy resumes from its checkpoints. Collective. Errors: as of save(). Source:
/// paddle.distributed.sharding.save_group_sharded_model.
template <typename Model>
void save_group_sharded_model(const Model& model,
                              const std::string& output,
                              const optim::Optimizer* optimizer = nullptr) {
  detail::make_folder(output);
  save(model, output + "/model.pdparams");
  if (optimizer != nullptr) {
    detail::save_state(*optimizer, output + "/model.opt.safetensors");
  }
}

/// Puts back what save_group_sharded_model() wrote, into a model that is wrapped at any level on
/// any number of ranks, and, given an optimizer, its state and learning rates. Paddle has no
/// function for it: there, weights are loaded before wrapping. Collective. Cost: each rank reads
/// both files. Errors: CheckpointError on every rank if one cannot read the files, or they do not
/// fit.
template <typename Model>
void load_group_sharded_model(const Model& model,
                              const std::string& output,
                              optim::Optimizer* optimizer = nullptr) {
  detail::load_together(engine::module_of(model),
                        output + "/model.pdparams",
                        optimizer,
                        output + "/model.opt.safetensors");
}

}  // namespace argosy::fleet
