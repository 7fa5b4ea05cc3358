#include "argosy/recipes/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/text.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/engine/memory_count.h"
#include "argosy/engine/memory_format.h"
#include "argosy/engine/seed.h"
#include "argosy/fleet/fleet.h"
#include "argosy/fleet/updates.h"
#include "argosy/optim/optimizer.h"
#include "argosy/recipes/language.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/pictures.h"
#include "argosy/text/models/gpt.h"
#include "argosy/text/models/gpt_memory.h"
#include "argosy/text/open_tokenizer.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

constexpr const char* kEstimate = "recipes.estimate";
constexpr int64_t kClasses = 10;

/// Returns the loss of made-up samples, others for each number.
using LossOf = std::function<at::Tensor(int64_t number)>;

/// A network whose forward returns a loss.
class TrialImpl final : public torch::nn::Module {
 public:
  TrialImpl(const std::shared_ptr<torch::nn::Module>& network, LossOf loss)
      : loss_(std::move(loss)) {
    (void)register_module("network", network);
  }
  at::Tensor forward(int64_t number) { return loss_(number); }

 private:
  LossOf loss_;
};
TORCH_MODULE(Trial);

/// A model that is to be trained, and its loss.
struct Subject {
  std::string name{};
  std::shared_ptr<torch::nn::Module> module{};
  LossOf loss{};
  std::string batch{};  ///< in words
  int64_t batch_bytes = 0;
  std::optional<engine::StepMemory> step{};  ///< unset: there is no formula
};

text::GptOptions planned_shape(const TrainSettings& settings) {
  if (!settings.tokenizer.empty()) {
    return shape_of_model(wanted_of(settings), text::open_tokenizer(settings.tokenizer));
  }
  return is_published(settings.model)
             ? text::gpt_options(settings.model)
             : shape_of_model(wanted_of(settings), text::open_tokenizer("bytes"));
}

Subject language_model(const TrainSettings& settings, bool divided) {
  const text::GptOptions shape = planned_shape(settings);
  const int64_t length = settings.sequence_length.value_or(shape.context);
  const bool pure = settings.amp == kPure;
  text::Gpt gpt = deferred_gpt(shape, settings.recompute);
  const at::Tensor tokens =
      at::arange(settings.batch_size * (length + 1), at::kLong).remainder(shape.vocab_size);
  const at::Tensor windows = tokens.view({settings.batch_size, length + 1});
  return {.name = text::to_string(shape),
          .module = gpt.ptr(),
          .loss =
              [gpt, windows, length, classes = shape.vocab_size](int64_t number) mutable {
                windows.add_(number).remainder_(classes);
                return gpt->loss(windows.narrow(1, 0, length), windows.narrow(1, 1, length));
              },
          .batch = fmt::format("{} windows of {} tokens", settings.batch_size, text::count(length)),
          .batch_bytes = static_cast<int64_t>(windows.nbytes()),
          .step = text::step_memory(shape,
                                    {.sequences = settings.batch_size,
                                     .tokens = length,
                                     .bf16 = settings.amp != "off" && !pure,
                                     .recompute = settings.recompute,
                                     .divided = divided,
                                     .pure_bf16 = pure})};
}

Subject picture_model(const TrainSettings& settings, const ModelEntry& entry, const Spec& spec) {
  ARGOSY_CHECK(!settings.recompute && !settings.sequence_length.has_value(),
               kEstimate,
               "--recompute and --sequence_length are about language models, and {} learns from "
               "pictures",
               spec.name);
  ModelSize size{.outputs = kClasses, .channels = entry.channels == 0 ? 3 : entry.channels};
  int64_t side = entry.side != 0 ? entry.side : settings.image_size.value_or(entry.usual_side);
  BuiltModel built;
  if (settings.data.empty()) {
    built = entry.build(size, Values(kModels, entry.row, spec.options));
  } else {
    const std::unique_ptr<PictureAssembly> assembly = assemble_pictures(wanted_of(settings));
    built = assembly->model;
    size = assembly->sizes;
    side = assembly->shape.side;
  }
  const at::Tensor pictures = at::zeros({settings.batch_size, size.channels, side, side});
  return {.name = settings.model,
          .module = built.module,
          .loss =
              [built, pictures](int64_t number) {
                pictures.fill_(static_cast<double>(number));
                return built.forward(pictures).square().mean();
              },
          .batch = fmt::format("{} pictures", settings.batch_size),
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
  subject.loss(0).backward();
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
  subject.loss(0).backward();
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

  [[nodiscard]] int64_t ranks() const { return dp * sharding; }
};

Axes axes_of(const std::string& mesh) {
  Axes axes;
  for (const auto& [name, size] : mesh_of(mesh)) {
    ARGOSY_CHECK(size > 0,
                 kEstimate,
                 "--mesh {}: an estimate needs each axis's number of processes, such as {}=4",
                 mesh,
                 name);
    axes.dp = name == "dp" ? size : axes.dp;
    axes.sharding = name == "sharding" ? size : axes.sharding;
    axes.shards = axes.shards || name == "sharding";
  }
  return axes;
}

/// What is measured is what is estimated.
void check_job(const EstimateSettings& settings, int expected) {
  const auto ranks = env::get_int("WORLD_SIZE", 1, 1 << 20).value_or(1);
  ARGOSY_CHECK(ranks == expected,
               kEstimate,
               "--measure needs the mesh's {} processes, got {}: argosy launch --nproc_per_node {} "
               "argosy estimate …",
               expected,
               ranks,
               expected);
  ARGOSY_CHECK(settings.hosts == 1 || env::get("ARGOSY_BACKEND").value_or("") == "gloo" ||
                   env::get_int("GROUP_WORLD_SIZE", 1, 1 << 20).value_or(1) == settings.hosts,
               kEstimate,
               "--measure --hosts {}: the processes of this job are on fewer hosts and share "
               "memory. Start it on {}, or set ARGOSY_BACKEND=gloo, with which they do not",
               settings.hosts,
               settings.hosts);
}

/// Trains as the settings say and counts.
void measure(const TrainSettings& settings, Subject& subject, EstimateResult& result) {
  constexpr int64_t kUpdates = 4;  // the last two are alike
  auto model = fleet::distributed_model(Trial(subject.module, std::exchange(subject.loss, {})));
  auto optimizer =
      fleet::distributed_optimizer(make_optimizer(settings, engine::named_parameters(model)));
  const data::TensorDataset numbers(
      at::arange(kUpdates * fleet::virtual_ranks() * settings.accumulate));
  data::DataLoader loader(
      numbers,
      fleet::distributed_batch_sampler(numbers.size(), {.micro_batches = settings.accumulate}));
  int64_t kept = 0, update_number = 0;
  for (auto& update : fleet::updates(loader)) {
    if (update_number++ == kUpdates - 2) {
      engine::reset_memory_count();
    }
    for (auto& [number] : update) {
      model(number.item().toLong()).backward();
    }
    optimizer.step();
    kept = engine::memory_count().now;
    optimizer.zero_grad();
  }
  const at::Tensor most = at::tensor({kept, engine::memory_count().most}, at::kLong);
  fleet::all_reduce(most, {.op = comm::ReduceOp::kMax});
  result.measured_kept = most[0].item<int64_t>();
  result.measured_most = most[1].item<int64_t>();
}

/// How the processes will train.
parallel::EstimateOptions options_for(const EstimateSettings& settings, const Axes& axes) {
  const TrainSettings& training = settings.training;
  const int64_t ranks = axes.ranks();
  ARGOSY_CHECK(ranks % settings.hosts == 0,
               kEstimate,
               "--hosts {} do not divide the mesh's {} processes evenly",
               settings.hosts,
               ranks);
  const bool divides = axes.shards && training.stage() == 3;
  parallel::EstimateOptions options{.ranks = static_cast<int>(ranks),
                                    .virtual_ranks = training.virtual_ranks,
                                    .micro_batches = training.accumulate};
  options.wrapping.shared_memory =
      settings.hosts == 1 ||
      (divides && ranks % (settings.hosts * axes.sharding) == 0);  // inside of hosts
  if (divides) {
    options.wrapping.shard = parallel::ShardOptions{.degree = static_cast<int>(axes.sharding)};
    if (training.amp == kPure) {
      options.wrapping.shard->mixed_precision = parallel::MixedPrecision{};
    }
    if (!training.offload_folder.empty()) {
      options.wrapping.shard->offload = parallel::Offload{training.offload_folder};
    }
  }
  const bool over_hosts = axes.shards && settings.hosts > 1;
  options.scatter_gradients = over_hosts && training.stage() == 2;
  options.divide_state = over_hosts && training.stage() == 1;
  options.states = states_of(training);
  return options;
}

}  // namespace

program::Options options_of(EstimateSettings& s) {
  program::Options rows = options_of(s.training);
  const std::set<std::string_view> counting{"model",
                                            "data",
                                            "image_size",
                                            "tokenizer",
                                            "sequence_length",
                                            "batch_size",
                                            "accumulate",
                                            "mesh",
                                            "virtual_ranks",
                                            "sharding_stage",
                                            "offload_folder",
                                            "recompute",
                                            "optimizer",
                                            "amp"};
  for (program::Option& row : rows) {
    row.group = counting.contains(row.key()) ? row.group : "";
  }
  rows.push_back(
      {"--hosts", "N", "Hosts of the processes; on one they share memory", &s.hosts, {.least = 1}});
  rows.push_back({"--measure",
                  "",
                  "Trains four updates under argosy launch, and shows what was held",
                  &s.measure});
  rows.push_back({"--json", "", "Numbers by name, in bytes, instead of a table", &s.json});
  return rows;
}

EstimateResult estimate(const EstimateSettings& settings) {
  const TrainSettings& training = settings.training;
  ARGOSY_CHECK(
      !training.model.empty(), kEstimate, "--model is required. See: argosy train --list models");
  ARGOSY_CHECK(
      training.traffic == "none",
      kEstimate,
      "--traffic {}: what a strategy that saves traffic keeps besides is not counted. Leave "
      "it out; docs/guides/slow_networks.md says how much it is",
      training.traffic);
  const Axes axes = axes_of(training.mesh);
  const parallel::EstimateOptions options = options_for(settings, axes);
  fleet::DistributedStrategy strategy = strategy_of(training);
  strategy.virtual_ranks = training.virtual_ranks;
  strategy.amp = training.amp != "off";
  if (settings.measure) {
    check_job(settings, options.ranks);
    fleet::init(strategy);
  }
  seed_everything(1);
  engine::count_memory();
  const int64_t before = engine::memory_count().now;
  const Spec spec = parse_spec(kModels, training.model);
  const ModelEntry& entry = find_entry(kModels, models(), spec.name);
  ARGOSY_CHECK(
      entry.material != Material::kClicks,
      "recipes.estimate",
      "{}: its rows are made as their ids come, so what they will hold is not known. A row "
      "of dim numbers takes some 12·dim + 60 bytes with Adam, on each of two servers",
      spec.name);
  const bool divides = options.wrapping.shard.has_value() && options.ranks > 1;
  Subject subject = entry.material == Material::kText ? language_model(training, divides)
                                                      : picture_model(training, entry, spec);
  EstimateResult result{.model = subject.name, .batch = subject.batch, .ranks = options.ranks};
  for (const at::Tensor& parameter : subject.module->parameters()) {
    result.parameters += parameter.numel();
  }
  result.counted_activations = !subject.step.has_value();
  if (result.counted_activations) {
    subject.step = counted_step(subject, training.amp);
    for (const at::Tensor& parameter : subject.module->parameters()) {
      parameter.mutable_grad() = at::Tensor();
    }
  }
  result.each = parallel::estimate_memory(*subject.module, *subject.step, options);
  if (settings.measure) {
    measure(training, subject, result);
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
  table += fmt::format("{}: {} parameters; each of {} {} holds\n",
                       result.model,
                       text::count(result.parameters),
                       result.ranks,
                       result.ranks == 1 ? "process" : "processes");
  line("parameters", each.parameters);
  line("gradients", each.gradients);
  line("optimizer's state", each.state);
  if (each.waiting > 0) {
    line("sums of gradients", each.waiting, "of virtual ranks, that wait for others");
  }
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
    line("whole parameters", each.gathered);
  }
  if (each.reduced > 0) {
    line("whole gradients", each.reduced);
  }
  line("activations",
       each.activations,
       "of " + result.batch +
           (result.counted_activations ? ", counted in a step: there is no formula" : ""));
  line("at most in a step", each.most(), "in " + each.moment);
  if (result.measured_most) {
    line("  measured", *result.measured_most);
  }
  return table;
}

nlohmann::ordered_json to_json(const EstimateResult& result) {
  const parallel::MemoryEstimate& each = result.each;
  nlohmann::ordered_json json{{"model", result.model},
                              {"ranks", result.ranks},
                              {"model_parameters", result.parameters},
                              {"parameters", each.parameters},
                              {"gradients", each.gradients},
                              {"state", each.state},
                              {"waiting", each.waiting},
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
