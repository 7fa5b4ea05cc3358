#include <fmt/format.h>

#include <filesystem>

#include <ATen/Functions.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/checkpoint/saver.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/core.h"
#include "argosy/train/model.h"
#include "argosy/train/training_state.h"

namespace argosy::train {
namespace {

void save_folder(const detail::Core& core, const std::filesystem::path& path) {
  const std::filesystem::path above = path.has_parent_path() ? path.parent_path() : ".";
  checkpoint::Saver saver(above.string(), {.async = false}, core.group);
  saver.save(detail::capture(core), path.filename().string());
}

}  // namespace

void Model::save(const std::string& path) const {
  const std::filesystem::path file(path);
  const std::string ending = file.extension().string();
  ARGOSY_CHECK(file.has_filename(), "train.save", "expected a file or a folder, got \"{}\"", path);
  if (ending.empty()) {
    core_->network.sync_buffers();
    save_folder(*core_, file);
    return;
  }
  ARGOSY_CHECK(checkpoint::is_weights_ending(ending),
               "train.save",
               "what to write goes by the ending: expected .pt or .pth (torch.load), .safetensors, "
               ".pdparams (paddle.load), or none (a checkpoint with the optimizer's state), got "
               "\"{}\"",
               path);
  core_->network.sync_buffers();
  const detail::Judged judged(*core_);
  checkpoint::save_weights_together(network(), path, core_->group);
}

engine::LoadResult Model::load(const std::string& path, const LoadModelOptions& options) {
  const bool whole = checkpoint::is_checkpoint(path) && core_->optimizer.has_value() &&
                     !options.partial && !options.reset_optimizer && options.renames.empty();
  if (!whole) {
    return checkpoint::load_weights(
        network(), path, {.renames = options.renames}, {.partial = options.partial});
  }
  detail::restore(*core_, detail::read_together(path, core_->group).snapshot, path);
  engine::LoadResult result;
  for (const auto& [name, tensor] : engine::state_dict(network())) {
    result.loaded.push_back(name);
  }
  return result;
}

engine::Summary Model::summary(const std::vector<int64_t>& input_shape,
                               at::ScalarType dtype) const {
  const std::vector<at::Tensor> parameters = network().parameters();
  const at::Tensor zeros = at::zeros(
      input_shape,
      parameters.empty() ? at::TensorOptions(dtype) : parameters.front().options().dtype(dtype));
  return engine::summary(network(), {zeros}, [&] { (void)core_->network.forward_alone({zeros}); });
}

}  // namespace argosy::train
