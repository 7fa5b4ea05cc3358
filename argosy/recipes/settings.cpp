#include "argosy/recipes/settings.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/fleet/strategy.h"
#include "argosy/os/fd.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

/// Whether a mesh has the axis that a stage is about.
bool divides(const std::string& mesh) {
  return mesh.find("sharding") != std::string::npos;
}

constexpr std::string_view kWhat = "What";
constexpr std::string_view kLength = "How long";
constexpr std::string_view kDivided = "How it is divided";
constexpr std::string_view kLearning = "How it learns";
constexpr std::string_view kTraces = "What it leaves";
constexpr std::string_view kWords = "What it says";
constexpr std::string_view kHow = "How";
constexpr std::string_view kResults = "Results";

/// Of a run, named by its folder or by its run.json, what `argosy train` was told lies in
/// recipe.json.
std::string file_of_options(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder && fs::path(path).filename() != "run.json") {
    return path;
  }
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  const fs::path recipe = folder / "recipe.json";
  return is_folder || fs::is_regular_file(recipe, error) ? recipe.string() : path;
}

}  // namespace

// clang-format off
program::Options options_of(TrainSettings& s) {
  return {
    {"--model", "NAME", "Model: see --list models", &s.model, {}, kWhat},
    {"--data", "NAME[:PATH]", "Data set: see --list data; without a path what argosy data fetch brought", &s.data, {}, kWhat},
    {"--val", "criteo:FILE", "Of clicks: the log on which it evaluates; unset: none", &s.val, {}, kWhat},
    {"--image_size", "N", "Side of the pictures; unset: the model's", &s.image_size, {.least = 1}, kWhat},
    {"--tokenizer", "FILE", "Of text: bytes, or a file or folder of GPT-2, Hugging Face, sentencepiece", &s.tokenizer, {}, kWhat},
    {"--sequence_length", "N", "Tokens of a window of text; unset: the model's context, or 256", &s.sequence_length, {.least = 1}, kWhat},
    {"--augment", "LIST", "Transforms, see --list augment; none; default", &s.augment, {}, kWhat},
    {"--pretrained", "FILE", "Weights to begin with: what fits of a file; of clicks a run or a checkpoint with the same --model", &s.pretrained, {}, kWhat},
    {"--epochs", "N", "Passes over the training split", &s.epochs, {.least = 1}, kLength},
    {"--num_iters", "N", "Ends after so many updates", &s.num_iters, {.least = 1}, kLength},
    {"--batch_size", "N", "Samples of a batch, per virtual rank", &s.batch_size, {.least = 1}, kLength},
    {"--virtual_ranks", "N", "Same bits on any number of processes; 0: the resumed training's, or processes", &s.virtual_ranks, {.least = 0, .most = fleet::kMostVirtualRanks}, kLength},
    {"--mesh", "AXES", "Processes by axis: dp=2,sharding=2; sharding alone: all of them", &s.mesh, {}, kDivided},
    {"--sharding_stage --stage", "N", "What the axis sharding divides: 1 state; 2 gradients too; 3 parameters too (unset: 3)", &s.sharding_stage, {.least = 1, .most = 3}, kDivided},
    {"--offload_folder", "FOLDER", "Where the optimizer's state and masters lie in files, in stage 3", &s.offload_folder, {}, kDivided},
    {"--recompute", "", "Computes a language model's blocks again in backward, for less memory", &s.recompute, {}, kDivided},
    {"--mode", "WORD", "Of clicks: when servers update: sync, async or half_async; unset: sync", &s.mode, {}, kDivided},
    {"--staleness", "N", "With half_async: steps that a worker may be ahead of the slowest; unset: 8", &s.staleness, {.least = 0}, kDivided},
    {"--traffic", "NAME", "Saves traffic between processes: see --list traffic; none", &s.traffic, {}, kDivided},
    {"--accumulate", "N", "Batches of an update", &s.accumulate, {.least = 1}, kLength},
    {"--drop_last", "", "Leaves out a short last batch", &s.drop_last, {}, kLength},
    {"--optimizer", "NAME", "See --list optimizers", &s.optimizer, {}, kLearning},
    {"--lr", "X", "Learning rate; unset: the optimizer's", &s.lr, {.least = 0}, kLearning},
    {"--weight_decay", "X", "Unset: the optimizer's", &s.weight_decay, {.least = 0}, kLearning},
    {"--schedule", "NAME", "Of the rate: see --list schedules", &s.schedule, {}, kLearning},
    {"--warmup", "N", "Updates in which the rate rises from 0", &s.warmup, {.least = 0}, kLearning},
    {"--clip_norm", "X", "Limit for the norm of all gradients; with --traffic dgc of each", &s.clip_norm, {.least = 0}, kLearning},
    {"--label_smoothing", "X", "Share spread on all classes", &s.label_smoothing, {.least = 0}, kLearning},
    {"--ema", "X", "Evaluates and keeps an average of the weights: 0.999", &s.ema, {.least = 0}, kLearning},
    {"--sync_bn", "", "Batch norm over all processes", &s.sync_bn, {}, kLearning},
    {"--memory_format", "WORD", "Order of pixels", &s.memory_format, {.words = "auto|as_is|contiguous|channels_last"}, kLearning},
    {"--amp", "WORD", "Mixed precision; pure: divided parameters in 16 bits too, with f32 masters", &s.amp, {.words = "off|bfloat16|float16|pure_bfloat16"}, kLearning},
    {"--device", "WORD", "auto (a GPU where there is one), cpu, cuda, cuda:<number>, gpu", &s.device, {}, kLearning},
    {"--seed", "N", "Of weights, order, augmentation and dropout", &s.seed, {.least = 0}, kLearning},
    {"--run_dir", "DIR", "Folder for weights, checkpoints, figures; none; auto: runs/<time>", &s.run_dir, {}, kTraces},
    {"--save_freq", "N", "Updates between two checkpoints; after each epoch anyhow", &s.save_freq, {.least = 1}, kTraces},
    {"--keep_last", "N", "Checkpoints that stay; 0: all", &s.keep_last, {.least = 0}, kTraces},
    {"--resume", "WORD", "Goes on where the run's newest checkpoint ends", &s.resume, {.words = "never|auto|must"}, kTraces},
    {"--eval_freq", "N", "Epochs between two evaluations", &s.eval_freq, {.least = 1}, kWords},
    {"--eval_batch_size", "N", "Unset: batch_size", &s.eval_batch_size, {.least = 1}, kWords},
    {"--log_freq", "N", "Batches between two lines", &s.log_freq, {.least = 1}, kWords},
    {"--sample", "TEXT", "A language model continues it after each epoch", &s.sample, {}, kWords},
    {"--verbose", "N", "0 the result only, 1 a bar, 2 lines, 3 with times", &s.verbose, {.least = 0}, kWords},
    {"--num_workers", "N", "Loader threads, per process", &s.num_workers, {.least = 0}, kWords}};
}

program::Options options_of(EvaluateSettings& s) {
  return {
    {"--data", "NAME[:PATH]", "Data set; unset: the run's", &s.data, {}, kWhat},
    {"--split", "NAME", "train, valid, test; unset: the one that it was evaluated on", &s.split, {}, kWhat},
    {"--model", "NAME", "Model; unset: the run's", &s.model, {}, kWhat},
    {"--image_size", "N", "Side of the pictures; unset: the run's", &s.image_size, {.least = 1}, kWhat},
    {"--batch_size", "N", "Samples of a batch, per process; unset: 64, of clicks 4096", &s.batch_size, {.least = 1}, kHow},
    {"--amp", "WORD", "Mixed precision; unset: the run's, off without one", &s.amp, {.words = "off|bfloat16|float16|pure_bfloat16"}, kHow},
    {"--device", "WORD", "auto (a GPU where there is one), cpu, cuda, cuda:<number>, gpu", &s.device, {}, kHow},
    {"--num_workers", "N", "Loader threads, per process", &s.num_workers, {.least = 0}, kHow},
    {"--verbose", "N", "0 silent, 1 a bar, 2 lines", &s.verbose, {.least = 0}, kHow},
    {"--num_iters", "N", "The first batches of each process only", &s.num_iters, {.least = 1}, kHow}};
}

program::Options options_of(PredictSettings& s) {
  program::Options rows = options_of(static_cast<EvaluateSettings&>(s));
  rows.pop_back();  // predictions are of all
  rows.push_back({"--out", "FILE", ".csv or .jsonl; unset: CSV, printed", &s.out, {}, kResults});
  rows.push_back({"--sheet", "FILE", "Page .html of pictures, predicted and true", &s.sheet, {}, kResults});
  rows.push_back({"--sheet_size", "N", "Pictures on it", &s.sheet_size, {.least = 1}, kResults});
  rows.push_back({"--submission", "DIR", "Folder with Kaggle's training.csv, test.csv and IdLookupTable.csv: --out becomes the contest's file", &s.submission, {}, kResults});
  rows.push_back({"--topk", "N", "Classes named for each picture", &s.topk, {.least = 1}, kResults});
  return rows;
}

program::Options options_of(GenerateSettings& s) {
  return {
    {"--checkpoint", "PATH", "A run's folder, a checkpoint, weights, or a folder of Hugging Face", &s.checkpoint, {.required = true}, kWhat},
    {"--prompt", "TEXT", "What the text begins with; unset: nothing", &s.prompt, {}, kWhat},
    {"--tokenizer", "FILE", "Unset: the run's", &s.tokenizer, {}, kWhat},
    {"--model", "NAME", "Unset: the run's", &s.model, {}, kWhat},
    {"--max_new_tokens", "N", "Unset: what the model's context leaves", &s.max_new_tokens, {.least = 0}, kHow},
    {"--temperature", "X", "Logits are divided by it; 0: always the likeliest token", &s.temperature, {.least = 0}, kHow},
    {"--top_k", "N", "Only the N likeliest tokens; 0: all", &s.top_k, {.least = 0}, kHow},
    {"--top_p", "X", "Only the likeliest tokens that have this share together", &s.top_p, {.least = 0, .most = 1}, kHow},
    {"--seed", "N", "Of the choice: the same gives the same text", &s.seed, {.least = 0}, kHow},
    {"--device", "WORD", "auto (a GPU where there is one), cpu, cuda, cuda:<number>, gpu", &s.device, {}, kHow}};
}
// clang-format on

nlohmann::ordered_json to_json(TrainSettings settings) {
  return to_json(options_of(settings));
}

nlohmann::ordered_json read_options(const std::string& from) {
  const std::string path = file_of_options(from);
  const std::string text = os::read_file(path).or_throw<ConfigError>("recipes.config");
  nlohmann::ordered_json json;
  try {
    json = nlohmann::ordered_json::parse(text);
  } catch (const nlohmann::json::exception& error) {  // a number without end is no parse_error
    throw ConfigError(
        "recipes.config",
        fmt::format(
            "{}: expected a JSON object of options, or a run.json: {}", path, error.what()));
  }
  if (!json.is_object()) {
    throw ConfigError("recipes.config",
                      fmt::format("{}: expected a JSON object of options, or a run.json", path));
  }
  // Of a run: what the trainer was told stands in a field of its own.
  if (json.contains("options") && json["options"].is_object()) {
    if (const auto mesh = json["options"].find("mesh");
        mesh == json["options"].end() || !mesh->is_string() || !divides(*mesh)) {
      json["options"].erase("sharding_stage");  // once 3 where nothing was divided
    }
    if (json.contains("changes") && !json["changes"].empty()) {
      log::warn(
          "[recipes.config] {}: that run was told otherwise on its way: {}. These are the options "
          "it ended with; they do not repeat it",
          path,
          json["changes"].dump());
    }
    return json["options"];
  }
  return json;
}

void take_options(TrainSettings& settings,
                  const nlohmann::ordered_json& json,
                  const std::string& file) {
  try {
    program::from_json(options_of(settings), json);  // not nlohmann's, which would be found too
  } catch (const UsageError& error) {
    const std::string what = error.what();  // "[where] what is wrong"
    throw ConfigError("recipes.config", file + ": " + what.substr(what.find(' ') + 1));
  }
}

bool parse_with_config(const program::HelpText& about,
                       program::Options options,
                       const std::vector<std::string>& words,
                       TrainSettings& settings) {
  std::string from;
  options.push_back({"--config", "FILE", "Options out of a file: JSON, or a run's folder", &from});
  if (program::parse_or_help(about, options, words)) {
    return true;
  }
  if (from.empty()) {
    return false;
  }
  const bool stage_given = settings.sharding_stage.has_value();
  const bool mesh_given = !settings.mesh.empty();
  take_options(settings, read_options(from), from);
  const bool helped = program::parse_or_help(about, options, words);  // the words win
  if (mesh_given && !stage_given && !divides(settings.mesh)) {
    settings.sharding_stage.reset();  // of the file's mesh
  }
  return helped;
}

}  // namespace argosy::recipes
