#include "argosy/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/set_aside.h"
#include "argosy/engine/device.h"
#include "argosy/engine/seed.h"
#include "argosy/engine/state_dict.h"
#include "argosy/fleet/fleet.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/language.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/run.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using nlohmann::ordered_json;

void load_pretrained(const Assembly& assembly, const TrainSettings& settings) {
  if (settings.pretrained.empty()) {
    return;
  }
  if (const auto shape = hugging_face_shape(settings.pretrained)) {
    load_hugging_face(*assembly.model.module, *shape, settings.pretrained);
    return;
  }
  const engine::LoadResult result = checkpoint::load_weights(
      *assembly.model.module, settings.pretrained, {}, {.partial = true, .convert_dtype = true});
  if (settings.verbose > 0) {
    fleet::print("{}: {}\n", settings.pretrained, result.to_string());
  }
}

/// Empty: nothing is written.
std::string run_dir_of(const TrainSettings& settings) {
  if (settings.run_dir == "none") {
    return {};
  }
  return settings.run_dir == "auto" ? fleet::run_dir() : settings.run_dir;
}

void announce(const TrainSettings& settings,
              const Assembly& assembly,
              const Lengths& lengths,
              const std::string& run_dir,
              int64_t ranks) {
  if (settings.verbose == 0) {
    return;
  }
  int64_t parameters = 0;
  for (const at::Tensor& parameter : assembly.model.module->parameters()) {
    parameters += parameter.numel();
  }
  const std::string other = assembly.evaluation_split();
  fleet::print(
      "{}, {} parameters; {}: {} {} to learn from{}\n",
      settings.model,
      text::count(parameters),
      assembly.data_spec.entry->row.name,
      text::count(assembly.size(assembly.training_split())),
      assembly.things(),
      other.empty()
          ? ""
          : fmt::format(", {} to evaluate on ({})", text::count(assembly.size(other)), other));
  c10::Device device = engine::device_of(*assembly.model.module);
  device.set_index(fleet::worker_num() > 1 ? -1 : device.index());  // each has its own
  const std::string divided =
      ranks == fleet::worker_num() ? "" : fmt::format(" of {} virtual ranks", ranks);
  const std::string cut = settings.num_iters.value_or(lengths.updates()) < lengths.updates()
                              ? text::count(*settings.num_iters) + " of "
                              : "";
  fleet::print(
      "{} process{} on {}{}: {} × {} × {} = {} samples an update, {}{} updates in {} epoch{}{}\n",
      fleet::worker_num(),
      fleet::worker_num() == 1 ? "" : "es",
      device.is_cpu() ? "the CPU" : device.str(),
      divided,
      ranks,
      settings.batch_size,
      settings.accumulate,
      ranks * settings.batch_size * settings.accumulate,
      cut,
      text::count(lengths.updates()),
      settings.epochs,
      settings.epochs == 1 ? "" : "s",
      run_dir.empty() ? "" : fmt::format("; {}", run_dir));
  if (fleet::strategy().shards()) {
    fleet::print("ranks by axis:\n{}", fleet::mesh().describe());
  }
  const int64_t wanted = ranks * settings.batch_size * settings.accumulate;
  const int64_t samples = assembly.size(assembly.training_split());
  if (wanted > samples && !settings.drop_last && fleet::is_first_worker()) {
    log::warn(
        "[recipes.train] an update takes {} samples, and there are {}: each epoch is one update, "
        "of all of them",
        wanted,
        samples);
  }
}

train::PrepareOptions prepare_options(const TrainSettings& settings,
                                      const optim::Optimizer& optimizer,
                                      const Lengths& lengths) {
  train::PrepareOptions options{.schedule = make_schedule(settings.schedule, optimizer, lengths)};
  if (settings.ema.has_value()) {
    // The first updates count more, so that short trainings have something of an average.
    options.ema = {.decay = *settings.ema, .warmup = optim::EmaWarmup::kNumUpdates};
  }
  options.amp = amp_of(settings.amp);
  return options;
}

/// Those of the command, else of the checkpoint from which it resumes. 0: one for each process.
int64_t virtual_ranks_of(const TrainSettings& settings) {
  if (settings.virtual_ranks > 0 || settings.resume == "never") {
    return settings.virtual_ranks;
  }
  train::FitOptions options{.run_dir = settings.run_dir};
  options.resume = train::Resume::kAuto;
  return train::virtual_ranks_to_resume(options).value_or(0);
}

/// Options that would do nothing.
void refuse_idle_options(const TrainSettings& settings,
                         const Assembly& assembly,
                         const std::string& run_dir) {
  const TrainSettings usual;
  ARGOSY_CHECK(
      !run_dir.empty() ||
          (!settings.save_freq.has_value() && settings.keep_last == usual.keep_last),
      "recipes.train",
      "--save_freq and --keep_last are about checkpoints, which --run_dir none leaves out");
  const bool evaluates = !assembly.evaluation_split().empty();
  ARGOSY_CHECK(
      evaluates || (settings.eval_freq == usual.eval_freq && !settings.eval_batch_size.has_value()),
      "recipes.train",
      "--eval_freq and --eval_batch_size are about evaluations, and {} has no split for them",
      assembly.data_spec.to_string());
}

/// What a run was begun with, and a resume cannot change.
void check_as_begun(const TrainSettings& settings, const std::string& run_dir) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::path(run_dir) / "checkpoints";
  const bool resumes = settings.resume != "never" && !run_dir.empty() &&
                       std::any_of(fs::directory_iterator(folder, error),
                                   fs::directory_iterator(),
                                   [](const fs::directory_entry& entry) {
                                     return checkpoint::is_checkpoint(entry.path().string());
                                   });
  if (!resumes) {
    return;
  }
  std::string begun = settings.amp;
  try {
    begun = read_description(run_dir).value_or(StoredRecipe{.settings = settings}).settings.amp;
  } catch (const ConfigError&) {
    return;  // a damaged one is told where the training begins
  }
  ARGOSY_CHECK((begun == kPure) == (settings.amp == kPure),
               "recipes.resume",
               "{} was begun with --amp {}, whose parameters are of another type than those of "
               "--amp {}. Give --amp {}",
               run_dir,
               begun,
               settings.amp,
               begun);
}

train::FitOptions fit_options(const TrainSettings& settings, std::string run_dir) {
  train::FitOptions options{
      .batch_size = settings.batch_size,
      .epochs = settings.epochs,
      .num_workers = static_cast<int>(settings.num_workers),
      .num_iters = settings.num_iters,
      .accumulate_grad_batches = settings.accumulate,
      .data = {.drop_last = settings.drop_last, .seed = static_cast<uint64_t>(settings.seed)},
      .log = {.verbose = static_cast<int>(settings.verbose), .freq = settings.log_freq}};
  options.resume = settings.resume == "must"   ? train::Resume::kMust
                   : settings.resume == "auto" ? train::Resume::kAuto
                                               : train::Resume::kNever;
  if (!run_dir.empty()) {
    options.checkpoint.every_steps = settings.save_freq.value_or(0);
    options.checkpoint.keep_last = settings.keep_last;
  }
  options.run_dir = std::move(run_dir);
  return options;
}

ordered_json json_of(const train::Logs& logs) {
  auto json = ordered_json::object();
  for (const auto& [name, value] : logs) {
    json[name] = value;
  }
  return json;
}

const char* word_of(train::Ended ended) {
  switch (ended) {
    case train::Ended::kFinished:
      return "finished";
    case train::Ended::kStopped:
      return "stopped";
    case train::Ended::kPreempted:
      return "preempted";
  }
  return "?";
}

ordered_json result_of(const train::History& history, double seconds, const std::string& run_dir) {
  auto epochs = ordered_json::array();
  for (const train::Logs& logs : history.epochs) {
    epochs.push_back(json_of(logs));
  }
  ordered_json json{{"command", "train"}, {"ended", word_of(history.ended)}};
  if (!history.reason.empty()) {
    json["reason"] = history.reason;
  }
  json["steps"] = history.steps;
  json["processes"] = fleet::worker_num();
  json["seconds"] = seconds;
  json["result"] = epochs.empty() ? ordered_json::object() : epochs.back();
  json["epochs"] = std::move(epochs);
  json["run_dir"] = run_dir.empty() ? ordered_json(nullptr) : ordered_json(run_dir);
  return json;
}

/// Weights with which another training ended in this folder are not lost: they move aside, with the
/// description that says how to use them.
void keep_earlier_weights(const std::filesystem::path& folder) {
  const std::filesystem::path weights = folder / kWeightsFile;
  std::error_code error;
  if (!std::filesystem::exists(weights, error)) {
    return;
  }
  const std::filesystem::path kept = checkpoint::make_earlier_folder(folder, error);
  for (const char* file : {kWeightsFile, kDescriptionFile}) {
    if (!error && std::filesystem::exists(folder / file, error)) {
      std::filesystem::rename(folder / file, kept / file, error);
    }
  }
  if (error) {
    throw CheckpointError(
        "recipes.train",
        "cannot move aside the weights of another training that ended in this folder: " +
            error.message() + ". Give another --run_dir, or move them away",
        {weights.string()});
  }
  log::warn(
      "[recipes.train] {}: another training ended in this folder. Its weights and {} are now in "
      "{}, for argosy evaluate, predict and --pretrained",
      weights.string(),
      kDescriptionFile,
      kept.string());
}

/// Once it is known that the training can begin, or go on from what the folder has.
class WriteDescription final : public train::Callback {
 public:
  WriteDescription(std::string folder, StoredRecipe description)
      : folder_(std::move(folder)), description_(std::move(description)) {}
  void on_train_begin(const train::Training& training) override {
    if (!training.model.is_first_worker()) {
      return;
    }
    if (!training.resumed) {
      keep_earlier_weights(folder_);
    }
    const std::optional<StoredRecipe> begun = training.resumed ? begun_as() : std::nullopt;
    if (begun.has_value() && training.done) {
      return;
    }
    if (begun.has_value()) {
      go_on_from(*begun, training.step);
    }
    write_description(folder_, description_);
  }

 private:
  /// A user may have changed something on purpose, or not.
  void go_on_from(const StoredRecipe& begun, int64_t step) {
    const std::string changes = changed_options(begun.settings, description_.settings);
    description_.settings.lr = begun.settings.lr;
    if (description_.settings.virtual_ranks == 0) {
      description_.settings.virtual_ranks = begun.settings.virtual_ranks;
    }
    description_.changes = begun.changes;
    if (changes.empty()) {
      return;
    }
    if (begun.changes.empty() || !begun.changes.back().ends_with(": " + changes)) {
      description_.changes.push_back(fmt::format("after step {}: {}", step, changes));
    }
    log::warn(
        "[recipes.resume] {} resumes with changed options: {}. Weights, learning "
        "rate, the schedule's place and random numbers are the checkpoint's",
        folder_,
        changes);
  }

  /// A file that cannot be read is no reason not to go on.
  [[nodiscard]] std::optional<StoredRecipe> begun_as() const {
    try {
      return read_description(folder_);
    } catch (const Error& error) {
      log::warn(
          "[recipes.resume] {} It is written anew from this command's options; what the training "
          "was begun with, and so its learning rate, may be another",
          error.what());
      return std::nullopt;
    }
  }

  std::string folder_;
  StoredRecipe description_;
};

}  // namespace

nlohmann::ordered_json train(const TrainSettings& settings) {
  if (is_of_clicks(settings)) {
    return train_clicks(settings);
  }
  refuse_servers(settings);
  const auto start = std::chrono::steady_clock::now();
  join(settings);
  const std::unique_ptr<Assembly> assembled = assemble(wanted_of(settings));
  const Assembly& assembly = *assembled;
  const TrainSettings resolved = resolve(settings, assembly);
  const int64_t wanted = virtual_ranks_of(resolved);
  const int64_t ranks = wanted > 0 ? wanted : fleet::worker_num();
  if (wanted > 0) {  // before the model is divided
    fleet::detail::deal_to(wanted, resolved.virtual_ranks > 0);
  }
  const Lengths lengths = lengths_of(resolved, assembly, ranks);
  assembly.check(resolved);
  load_pretrained(assembly, resolved);
  train::Model model = model_on(resolved.device, assembly);
  const optim::Optimizer optimizer = make_optimizer(resolved, model.parameters());
  model.prepare(optimizer,
                assembly.loss(resolved.label_smoothing),
                assembly.metrics(),
                prepare_options(resolved, optimizer, lengths));
  seed_everything(wanted_of(resolved).seed, fleet::worker_index());

  const std::string run_dir = run_dir_of(resolved);
  refuse_idle_options(resolved, assembly, run_dir);
  check_as_begun(resolved, run_dir);
  announce(resolved, assembly, lengths, run_dir, ranks);
  train::FitOptions options = fit_options(resolved, run_dir);
  options.virtual_ranks = resolved.virtual_ranks;
  if (!assembly.evaluation_split().empty()) {
    options.eval_freq = resolved.eval_freq;
    options.data.eval_batch_size = resolved.eval_batch_size;
  }
  if (!run_dir.empty()) {
    options.log.class_names = assembly.class_names();
    StoredRecipe description{.settings = resolved};
    assembly.describe(description);
    options.callbacks.emplace_back(WriteDescription(run_dir, std::move(description)));
  }
  const train::History history = assembly.fit(model, resolved, options);

  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ordered_json result = result_of(history, seconds.count(), run_dir);
  if (run_dir.empty()) {
    const fleet::detail::WholeModels whole;
    result["weights_hash"] = checkpoint::weights_hash(engine::state_dict(*assembly.model.module));
    return result;
  }
  const std::string path = (std::filesystem::path(run_dir) / kWeightsFile).string();
  model.save(path);
  if (fleet::is_first_worker()) {
    result["weights"] = path;
    result["weights_hash"] = checkpoint::weights_hash(checkpoint::read_weights(path));
  }
  return result;
}

}  // namespace argosy::recipes
