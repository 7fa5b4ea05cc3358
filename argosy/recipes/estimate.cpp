#include "argosy/recipes/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/text.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/memory_count.h"
#include "argosy/engine/memory_format.h"
#include "argosy/engine/seed.h"
#include "argosy/fleet/fleet.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/recompute.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/parts.h"
#include "argosy/text/models/gpt.h"
#include "argosy/text/models/gpt_memory.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

constexpr const char* kEstimate = "recipes.estimate";
constexpr int64_t kClasses = 10;

/// A network whose forward returns a loss, on made-up samples.
class TrialImpl final : public torch::nn::Module {
 public:
  using Loss = std::function<at::Tensor()>;
  TrialImpl(const std::shared_ptr<torch::nn::Module>& network, Loss loss) : loss_(std::move(loss)) {
    (void)register_module("network", network);
  }
  at::Tensor forward() { return loss_(); }

 private:
  Loss loss_;
};
TORCH_MODULE(Trial);

/// A model that is to be trained, deferred, and its loss on a batch.
struct Subject {
  std::shared_ptr<torch::nn::Module> module{};
  TrialImpl::Loss loss{};
  int64_t batch_bytes = 0;
  std::optional<engine::StepMemory> step{};  ///< unset: there is no formula
};

Subject language_model(const EstimateSettings& settings, bool divided) {
  const text::GptOptions options = text::gpt_options(settings.model);
  const int64_t length = settings.sequence_length.value_or(options.context);
  Subject subject;
  subject.step = text::step_memory(options,
                                   {.sequences = settings.batch_size,
                                    .tokens = length,
                                    .bf16 = settings.amp == "bfloat16",
                                    .recompute = settings.recompute,
                                    .divided = divided,
                                    .pure_bf16 = settings.amp == kPure});
  auto gpt = engine::deferred<text::Gpt>(options);
  if (settings.recompute) {
    gpt->set_block_runner([](const text::GptBlock& block, const at::Tensor& x) {
      return parallel::recompute(block, x);
    });
  }
  const at::Tensor tokens =
      at::arange(settings.batch_size * (length + 1), at::kLong).remainder(options.vocab_size);
  const at::Tensor windows = tokens.view({settings.batch_size, length + 1});
  subject.batch_bytes = static_cast<int64_t>(windows.nbytes());
  subject.module = gpt.ptr();
  subject.loss = [gpt, windows, length]() mutable {
    return gpt->loss(windows.narrow(1, 0, length), windows.narrow(1, 1, length));
  };
  return subject;
}

Subject picture_model(const EstimateSettings& settings, const ModelEntry& entry, const Spec& spec) {
  ARGOSY_CHECK(!settings.recompute && !settings.sequence_length.has_value(),
               kEstimate,
               "--recompute and --sequence_length are about language models, and {} learns from "
               "pictures",
               spec.name);
  const int64_t channels = entry.channels == 0 ? 3 : entry.channels;
  const int64_t side =
      entry.side != 0 ? entry.side : settings.image_size.value_or(entry.usual_side);
  const BuiltModel built = entry.build({.outputs = kClasses, .channels = channels},
                                       Values(kModels, entry.row, spec.options));
  const at::Tensor pictures = at::zeros({settings.batch_size, channels, side, side});
  return {.module = built.module,
          .loss = [built, pictures] { return built.forward(pictures).square().mean(); },
          .batch_bytes = static_cast<int64_t>(pictures.nbytes())};
}

/// The size of the largest gradient that libtorch copies where there is none yet: it keeps one that
/// lies as its parameter does, but not those of its convolutions.
int64_t largest_copy(const Subject& subject) {
  const std::vector<at::Tensor> parameters = subject.module->parameters();
  std::vector<void*> came(parameters.size());
  std::vector<unsigned> hooks;
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].mutable_grad() = at::Tensor();
    hooks.push_back(parameters[i].register_hook(
        [&came, i](const at::Tensor& gradient) { came[i] = gradient.data_ptr(); }));
  }
  subject.loss().backward();
  int64_t largest = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].remove_hook(hooks[i]);
    if (parameters[i].grad().defined() && parameters[i].grad().data_ptr() != came[i]) {
      largest = std::max(largest, static_cast<int64_t>(parameters[i].nbytes()));
    }
  }
  return largest;
}

/// Counts what a step holds, in this process alone.
engine::StepMemory counted_step(const Subject& subject, const std::string& amp) {
  const engine::Autocast precision({.dtype = at::kBFloat16, .enabled = amp != "off"});
  if (engine::advise_channels_last(*subject.module).worth_trying) {
    engine::lay_out(*subject.module, engine::MemoryFormat::kChannelsLast);
  }
  const int64_t largest = largest_copy(subject);
  engine::reset_memory_count();  // gradients are there
  const int64_t held = engine::memory_count().now;
  subject.loss().backward();
  const int64_t most = engine::memory_count().most - held;
  int64_t gradients = 0;
  for (const at::Tensor& parameter : subject.module->parameters()) {
    gradients += static_cast<int64_t>(parameter.nbytes());
  }
  return {{.name = "the model",
           .parameters = {""},
           .used_again = {""},
           .learning = {""},
           .backward = {{}, {.bytes = most + largest, .gradients = gradients}}}};
}

fleet::DistributedStrategy strategy_of(const EstimateSettings& settings) {
  fleet::DistributedStrategy strategy{.hybrid_configs = mesh_of(settings.mesh),
                                      .sharding_configs = {.stage = settings.sharding_stage}};
  strategy.amp = settings.amp != "off";
  strategy.amp_configs.use_pure_bf16 = settings.amp == kPure;
  strategy.sharding_configs.offload_folder = settings.offload_folder;
  return strategy;
}

/// Numbers of state for each parameter, by a step of a small one.
int64_t states_of(const TrainSettings& words) {
  constexpr int64_t kElements = 8;
  at::Tensor parameter = at::ones({kElements}).set_requires_grad(true);
  parameter.mutable_grad() = at::ones({kElements});
  optim::Optimizer optimizer = make_optimizer(words, {{"parameter", parameter}});
  optimizer.step();
  const optim::OptimizerState state = optimizer.state_dict();
  return std::ranges::count_if(state.parameters.at(0).second,
                               [](const auto& each) { return each.second.numel() == kElements; });
}

struct Axes {
  int64_t dp = 1, sharding = 1;
  bool shards = false;
};

Axes axes_of(const EstimateSettings& settings) {
  Axes axes;
  for (const auto& [name, size] : mesh_of(settings.mesh)) {
    ARGOSY_CHECK(size > 0,
                 kEstimate,
                 "--mesh {}: an estimate needs each axis's number of processes, such as {}=4",
                 settings.mesh,
                 name);
    axes.dp = name == "dp" ? size : axes.dp;
    axes.sharding = name == "sharding" ? size : axes.sharding;
    axes.shards = axes.shards || name == "sharding";
  }
  return axes;
}

void check_processes(int expected) {
  const auto ranks = env::get_int("WORLD_SIZE", 1, 1 << 20).value_or(1);
  ARGOSY_CHECK(ranks == expected,
               kEstimate,
               "--measure needs the mesh's {} processes, got {}: argosy launch --nproc_per_node {} "
               "argosy estimate …",
               expected,
               ranks,
               expected);
}

/// Trains as the settings say and counts.
void measure(const EstimateSettings& settings, Subject& subject, EstimateResult& result) {
  auto model = fleet::distributed_model(Trial(subject.module, std::exchange(subject.loss, {})));
  TrainSettings words;
  words.optimizer = settings.optimizer;
  auto optimizer =
      fleet::distributed_optimizer(make_optimizer(words, engine::named_parameters(model)));
  constexpr int kSteps = 4;  // the last two are alike
  int64_t kept = 0;
  for (int i = 0; i < kSteps; ++i) {
    if (i == kSteps - 2) {
      engine::reset_memory_count();
    }
    model().backward();
    optimizer.step();
    kept = engine::memory_count().now;
    optimizer.zero_grad();
  }
  const at::Tensor most = at::tensor({kept, engine::memory_count().most}, at::kLong);
  fleet::all_reduce(most, {.op = comm::ReduceOp::kMax});
  result.measured_kept = most[0].item<int64_t>();
  result.measured_most = most[1].item<int64_t>();
}

}  // namespace

// clang-format off
program::Options options_of(EstimateSettings& s) {
  return {
    {"--model", "NAME", "gpt:layers=12,width=768 and such, or a model of --list models", &s.model, {.required = true}},
    {"--mesh", "AXES", "Processes by axis: dp=2,sharding=2", &s.mesh},
    {"--sharding_stage --stage", "N", "What the axis sharding divides: 1 state; 2 gradients too; 3 parameters too", &s.sharding_stage, {.least = 1, .most = 3}},
    {"--hosts", "N", "Hosts of the processes; on one they share memory", &s.hosts, {.least = 1}},
    {"--batch_size", "N", "Samples of a batch, per process", &s.batch_size, {.least = 1}},
    {"--sequence_length", "N", "Tokens of a sample; unset: the model's context", &s.sequence_length, {.least = 1}},
    {"--image_size", "N", "Side of the pictures; unset: the model's", &s.image_size, {.least = 1}},
    {"--optimizer", "NAME", "See argosy train --list optimizers", &s.optimizer},
    {"--amp", "WORD", "Mixed precision of the network; pure: 16-bit parameters too, with f32 masters", &s.amp, {.words = "off|bfloat16|pure_bfloat16"}},
    {"--offload_folder", "FOLDER", "Where the optimizer's state and masters lie in files; unset: in memory", &s.offload_folder},
    {"--recompute", "", "Computes a language model's blocks again in backward", &s.recompute},
    {"--json", "", "Numbers by name, in bytes, instead of a table", &s.json},
    {"--measure", "", "Trains four steps under argosy launch, and shows what was held", &s.measure}};
}
// clang-format on

EstimateResult estimate(const EstimateSettings& settings) {
  const Axes axes = axes_of(settings);
  EstimateResult result{.ranks = static_cast<int>(axes.dp * axes.sharding)};
  const bool divides = axes.shards && settings.sharding_stage == 3 && result.ranks > 1;
  check_divided(divides, settings.amp, settings.offload_folder, kEstimate);
  if (settings.measure) {
    check_processes(result.ranks);
    fleet::init(strategy_of(settings));
  }
  seed_everything(1);
  engine::count_memory();
  const int64_t before = engine::memory_count().now;
  const Spec spec = parse_spec(kModels, settings.model);
  const ModelEntry& entry = find_entry(kModels, models(), spec.name);
  Subject subject =
      entry.language ? language_model(settings, divides) : picture_model(settings, entry, spec);
  for (const at::Tensor& parameter : subject.module->parameters()) {
    result.parameters += parameter.numel();
  }
  result.counted_activations = !subject.step.has_value();
  if (result.counted_activations) {
    subject.step = counted_step(subject, settings.amp);
    for (const at::Tensor& parameter : subject.module->parameters()) {
      parameter.mutable_grad() = at::Tensor();
    }
  }
  parallel::EstimateOptions options{.ranks = result.ranks};
  options.wrapping.shared_memory =
      settings.hosts == 1 ||
      (divides && result.ranks % (settings.hosts * axes.sharding) == 0);  // inside of hosts
  if (divides) {
    options.wrapping.shard = parallel::ShardOptions{.degree = static_cast<int>(axes.sharding)};
    if (settings.amp == kPure) {
      options.wrapping.shard->mixed_precision = parallel::MixedPrecision{};
    }
    if (!settings.offload_folder.empty()) {
      options.wrapping.shard->offload = parallel::Offload{settings.offload_folder};
    }
  }
  const bool over_hosts = axes.shards && settings.hosts > 1;
  options.scatter_gradients = over_hosts && settings.sharding_stage == 2;
  options.divide_state = over_hosts && settings.sharding_stage == 1;
  TrainSettings words;
  words.optimizer = settings.optimizer;
  options.states = states_of(words);
  result.each = parallel::estimate_memory(*subject.module, *subject.step, options);
  if (settings.measure) {
    measure(settings, subject, result);
    *result.measured_kept -= before + subject.batch_bytes;
    *result.measured_most -= before + subject.batch_bytes;
  }
  return result;
}

std::string to_string(const EstimateResult& result) {
  const parallel::MemoryEstimate& each = result.each;
  std::string table;
  const auto line = [&](std::string_view what, int64_t bytes, std::string_view more = "") {
    table +=
        fmt::format("{:<34}{:>12}{}{}\n", what, text::bytes(bytes), more.empty() ? "" : "  ", more);
  };
  table += fmt::format("{} parameters, {} {}: bytes of each\n",
                       result.parameters,
                       result.ranks,
                       result.ranks == 1 ? "process" : "processes");
  line("parameters", each.parameters);
  line("gradients", each.gradients);
  line("optimizer's state", each.state);
  if (each.buffers > 0) {
    line("buffers of the model", each.buffers);
  }
  if (each.room > 0) {
    line("room for whole units", each.room, "kept for the next step");
  }
  line("between two steps", each.kept());
  if (result.measured_kept) {
    line("  measured", *result.measured_kept);
  }
  if (each.gathered > 0) {
    line("whole units of parameters", each.gathered);
  }
  if (each.reduced > 0) {
    line("whole units of gradients", each.reduced);
  }
  line("activations",
       each.activations,
       result.counted_activations ? "counted in a step of one process: there is no formula" : "");
  line("at most in a step", each.most(), "in " + each.moment);
  if (result.measured_most) {
    line("  measured", *result.measured_most);
  }
  return table;
}

nlohmann::ordered_json to_json(const EstimateResult& result) {
  const parallel::MemoryEstimate& each = result.each;
  nlohmann::ordered_json json{{"ranks", result.ranks},
                              {"model_parameters", result.parameters},
                              {"parameters", each.parameters},
                              {"gradients", each.gradients},
                              {"state", each.state},
                              {"buffers", each.buffers},
                              {"room", each.room},
                              {"kept", each.kept()},
                              {"gathered", each.gathered},
                              {"reduced", each.reduced},
                              {"activations", each.activations},
                              {"counted_activations", result.counted_activations},
                              {"most", each.most()},
                              {"moment", each.moment}};
  if (result.measured_kept && result.measured_most) {
    json["measured_kept"] = *result.measured_kept;
    json["measured_most"] = *result.measured_most;
  }
  return json;
}

}  // namespace argosy::recipes
