#include "argosy/recipes/restore.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/pictures.h"

namespace argosy::recipes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAverage = "ema";  // the part of a checkpoint

Wanted wanted_of(const EvaluateSettings& settings, const std::optional<StoredRecipe>& about) {
  const TrainSettings none;
  const TrainSettings& run = about.has_value() ? about->settings : none;
  ARGOSY_CHECK(!settings.model.empty() || !run.model.empty(),
               "recipes.restore",
               "{}: no recipe.json lies there that says which model it is. Give --model and "
               "--data",
               settings.weights);
  return {.model = settings.model.empty() ? run.model : settings.model,
          .data = settings.data.empty() ? run.data : settings.data,
          .image_size = settings.image_size.has_value() ? settings.image_size : run.image_size,
          .sequence_length = run.sequence_length,
          .tokenizer = run.tokenizer,
          .seed = static_cast<uint64_t>(run.seed)};
}

/// The pixels' constants are those that the weights have learned with, whatever the data set is.
void take_constants(PictureAssembly& assembly, const StoredRecipe& about) {
  ARGOSY_CHECK(about.sizes.outputs == assembly.sizes.outputs,
               "recipes.restore",
               "--data {}: the weights are of a model with {} outputs, and the data wants {}",
               assembly.data_spec.to_string(),
               about.sizes.outputs,
               assembly.sizes.outputs);
  if (about.shape.channels == assembly.shape.channels) {
    assembly.shape.mean = about.shape.mean;
    assembly.shape.std = about.shape.std;
  }
}

/// Returns the later of model.pt and the newest checkpoint: a run that goes on has weights of its
/// former end.
std::string newest_weights(const std::string& path) {
  std::error_code error;
  const fs::path run(path);
  const bool ended = fs::is_regular_file(run / kWeightsFile, error);
  std::string newest;
  std::vector<std::string> remarks;
  for (const fs::path& folder : {run / "checkpoints", run}) {
    if (newest.empty() && fs::is_directory(folder, error) &&
        !checkpoint::is_checkpoint(run.string())) {
      const checkpoint::Newest found = checkpoint::find_newest(folder.string());
      const std::vector<std::string> more = found.remarks();
      remarks.insert(remarks.end(), more.begin(), more.end());
      newest = found.path.value_or("");
    }
  }
  if (ended && (newest.empty() || fs::last_write_time(newest, error) <=
                                      fs::last_write_time(run / kWeightsFile, error))) {
    return (run / kWeightsFile).string();
  }
  for (const std::string& remark : remarks) {
    log::warn("[recipes.restore] {}", remark);
  }
  if (!newest.empty()) {
    return newest;
  }
  if (!fs::exists(run, error)) {
    throw CheckpointError("recipes.restore", "No such file or folder", {path});
  }
  return path;
}

}  // namespace

RunWeights weights_in(const std::string& path, const std::optional<StoredRecipe>& run) {
  const std::string weights = newest_weights(path);
  return {.path = weights,
          .averaged = run.has_value() && run->settings.ema.has_value() &&
                      checkpoint::weights_kind(weights) == checkpoint::WeightsKind::kFolder};
}

RunWeights weights_in(const std::string& path) {
  const std::string weights = newest_weights(path);
  const bool of_checkpoint = checkpoint::weights_kind(weights) == checkpoint::WeightsKind::kFolder;
  return weights_in(weights, of_checkpoint ? read_description(path) : std::nullopt);
}

engine::LoadResult load_weights(const torch::nn::Module& module,
                                const RunWeights& weights,
                                const checkpoint::ReadWeightsOptions& read,
                                engine::LoadOptions load) {
  if (load.advice.empty()) {
    load.advice = "Give --model with the options with which it was trained.";
  }
  engine::LoadResult done = checkpoint::load_weights(module, weights.path, read, load);
  if (weights.averaged) {
    checkpoint::ReadWeightsOptions of_average = read;
    of_average.part = kAverage;
    load.strict = false;
    checkpoint::load_weights(module, weights.path, of_average, load);
  }
  return done;
}

engine::StateDict read_weights(const RunWeights& weights, checkpoint::ReadWeightsOptions options) {
  engine::StateDict dict = checkpoint::read_weights(weights.path, options);
  if (weights.averaged) {
    options.part = kAverage;
    for (const auto& [name, tensor] : checkpoint::read_weights(weights.path, options)) {
      if (dict.contains(name)) {  // it counts its updates beside
        dict.set(name, tensor);
      }
    }
  }
  return dict;
}

Restored restore(const EvaluateSettings& settings,
                 std::shared_ptr<const datasets::Source> pictures) {
  const std::optional<StoredRecipe> about = find_description(settings.weights);
  const bool described = about.has_value() && settings.model.empty();
  const RunWeights weights = weights_in(settings.weights, about);
  Restored restored{.weights = weights.path};
  if (pictures != nullptr) {
    ARGOSY_CHECK(described && settings.data.empty() && !settings.image_size.has_value(),
                 "recipes.restore",
                 "pictures without a data set want a run's weights: its recipe.json tells classes "
                 "and sizes. No --model, --data and --image_size with them");
    restored.assembly = assemble_files(*about, std::move(pictures));
  } else {
    restored.assembly = assemble(wanted_of(settings, about));
    if (described) {
      restored.label_smoothing = about->settings.label_smoothing;
      if (auto* of_pictures = dynamic_cast<PictureAssembly*>(restored.assembly.get())) {
        take_constants(*of_pictures, *about);
      }
    }
  }
  restored.amp = !settings.amp.empty() ? settings.amp
                 : about.has_value()   ? about->settings.amp
                                       : restored.amp;
  const Assembly& assembly = *restored.assembly;
  const std::string usual = assembly.evaluation_split();
  restored.split = !settings.split.empty() ? settings.split
                   : usual.empty()         ? assembly.training_split()
                                           : usual;
  static_cast<void>(assembly.size(restored.split));  // says which splits there are
  load_weights(*assembly.model.module, weights);
  if (restored.amp == kPure && dynamic_cast<const PictureAssembly*>(&assembly) == nullptr) {
    assembly.model.module->to(at::kBFloat16);  // as the training rounds its masters
  } else if (restored.amp == kPure) {
    restored.amp = "bfloat16";  // pictures are f32
  }
  return restored;
}

}  // namespace argosy::recipes
