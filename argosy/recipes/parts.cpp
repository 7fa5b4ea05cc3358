#include "argosy/recipes/parts.h"

#include <filesystem>
#include <map>
#include <optional>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/strings.h"
#include "argosy/data/batch_sampler.h"
#include "argosy/engine/device.h"
#include "argosy/engine/memory_format.h"
#include "argosy/fleet/fleet.h"
#include "argosy/recipes/optimizers.h"
#include "argosy/recipes/traffic.h"

namespace argosy::recipes {

Wanted wanted_of(const TrainSettings& settings) {
  return {.model = settings.model,
          .data = settings.data,
          .image_size = settings.image_size,
          .sequence_length = settings.sequence_length,
          .tokenizer = settings.tokenizer,
          .recompute = settings.recompute,
          .seed = static_cast<uint64_t>(settings.seed)};
}

TrainSettings resolve(const TrainSettings& settings, const Assembly& assembly) {
  const Spec optimizer = parse_spec(kOptimizers, settings.optimizer);
  const OptimizerEntry& entry = find_entry(kOptimizers, optimizers(), optimizer.name);
  for (const auto& [option, given] : {std::pair("--val", !settings.val.empty()),
                                      std::pair("--mode", !settings.mode.empty()),
                                      std::pair("--staleness", settings.staleness.has_value())}) {
    ARGOSY_CHECK(!given,
                 "recipes.train",
                 "{} is about models of clicks, and {} is none: --model deepfm",
                 option,
                 settings.model);
  }
  TrainSettings resolved = settings;
  DataSpec data = assembly.data_spec;
  if (!data.path.empty()) {  // to be found from anywhere
    data.path = std::filesystem::absolute(data.path).lexically_normal().string();
  }
  resolved.data = data.to_string();
  assembly.resolve(resolved);
  resolved.lr = resolved.lr.value_or(entry.lr);
  resolved.weight_decay = settings.weight_decay.value_or(entry.weight_decay);
  return resolved;
}

Lengths lengths_of(const TrainSettings& settings, const Assembly& assembly, int64_t ranks) {
  const int64_t samples = assembly.size(assembly.training_split());
  const data::DistributedBatchSampler sampler(samples,
                                              {.batch_size = settings.batch_size,
                                               .num_replicas = static_cast<int>(ranks),
                                               .drop_last = settings.drop_last});
  ARGOSY_CHECK(sampler.size() > 0,
               "recipes.train",
               "{} samples are no batch of {} for each of {} virtual ranks. Take a smaller "
               "--batch_size, or leave --drop_last out",
               samples,
               settings.batch_size,
               ranks);
  return {.epochs = settings.epochs,
          .updates_per_epoch = (sampler.size() + settings.accumulate - 1) / settings.accumulate,
          .warmup = settings.warmup};
}

optim::Optimizer make_optimizer(const TrainSettings& settings,
                                const engine::NamedTensors& parameters) {
  const Spec spec = parse_spec(kOptimizers, settings.optimizer);
  const OptimizerEntry& entry = find_entry(kOptimizers, optimizers(), spec.name);
  OptimizerInputs inputs{.parameters = parameters,
                         .lr = settings.lr.value_or(entry.lr),
                         .weight_decay = settings.weight_decay.value_or(entry.weight_decay)};
  if (settings.clip_norm.value_or(0) > 0) {
    if (parse_spec(kTraffic, settings.traffic).name == "dgc") {  // nobody knows that of all
      inputs.clip = optim::ClipGradByNorm(*settings.clip_norm);
    } else {
      inputs.clip = optim::ClipGradByGlobalNorm(*settings.clip_norm);
    }
  }
  return entry.build(inputs, Values(kOptimizers, entry.row, spec.options));
}

std::optional<train::AmpOptions> amp_of(const std::string& amp) {
  return amp == "bfloat16"  ? std::optional(train::AmpOptions{.dtype = at::kBFloat16})
         : amp == "float16" ? std::optional(train::AmpOptions{.dtype = at::kHalf})
                            : std::nullopt;
}

train::Model model_on(const std::string& device, const Assembly& assembly) {
  assembly.model.module->to(engine::set_device(device, fleet::local_rank()));
  return assembly.model.model();
}

std::map<std::string, int64_t> mesh_of(const std::string& mesh) {
  constexpr const char* kMesh = "recipes.mesh";
  std::map<std::string, int64_t> axes;
  for (const std::string& piece : strings::split(mesh, ',')) {
    const std::string word(strings::trim(piece));
    if (word.empty() && mesh.empty()) {
      break;
    }
    const std::size_t equals = word.find('=');
    const std::string axis = word.substr(0, equals);
    const std::optional<int64_t> size =
        equals == std::string::npos ? -1 : strings::parse_int(word.substr(equals + 1));
    const std::string name = axis.ends_with("_degree") ? axis.substr(0, axis.size() - 7) : axis;
    ARGOSY_CHECK(!axis.empty() && size.has_value() && (*size > 0 || *size == -1),
                 kMesh,
                 "--mesh {}: expected axis=processes, or axis=-1 for what the others leave, got "
                 "\"{}\"",
                 mesh,
                 word);
    ARGOSY_CHECK(name == "dp" || name == "sharding" || *size == 1,
                 kMesh,
                 "--mesh {}: there is no axis \"{}\" yet, only dp (each has other samples) and "
                 "sharding (each has a part of the model, too){}",
                 mesh,
                 axis,
                 name == "pp" || name == "mp" || name == "sep"
                     ? ". Pipelines, tensor parallelism and long sequences do not exist yet"
                     : "");
    ARGOSY_CHECK(axes.emplace(name, *size).second, kMesh, "--mesh {}: {} stands twice", mesh, name);
  }
  return axes;
}

fleet::DistributedStrategy strategy_of(const TrainSettings& settings) {
  const std::map<std::string, int64_t> axes = mesh_of(settings.mesh);
  const bool sharding = axes.contains("sharding");  // of one process too: the types are the same
  const bool pure = settings.amp == kPure;
  const bool divides = sharding && settings.stage() == 3;
  ARGOSY_CHECK(sharding || !settings.sharding_stage.has_value(),
               "recipes.train",
               "--sharding_stage {} is about the axis sharding: add --mesh sharding=N, or "
               "--mesh sharding for all processes",
               settings.stage());
  ARGOSY_CHECK(divides || (!pure && settings.offload_folder.empty()),
               "recipes.train",
               "--amp {} and --offload_folder are about parameters that processes divide: add "
               "--mesh sharding=N, and --sharding_stage 3",
               kPure);
  fleet::DistributedStrategy strategy{
      .sync_batch_norm = settings.sync_bn,
      .memory_format = *engine::memory_format(settings.memory_format),
      .amp = pure,
      .amp_configs = {.use_pure_bf16 = pure},
      .hybrid_configs = axes,
      .sharding = sharding,
      .sharding_configs = {.stage = settings.stage(), .offload_folder = settings.offload_folder}};
  use_traffic(settings.traffic, strategy);
  return strategy;
}

void join(const TrainSettings& settings) {
  if (!fleet::is_initialized()) {
    fleet::init(strategy_of(settings), {}, settings.device);
  }
}

void join(const std::string& device) {
  if (!fleet::is_initialized()) {
    fleet::init({}, {}, device);
  }
}

}  // namespace argosy::recipes
