#include "argosy/recipes/settings.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/log.h"

namespace argosy::recipes {
namespace {

using Train = TrainSettings;

std::vector<Setting<Train>> model_rows() {
  return {{"model", "What", &Train::model, "Model: see --list models"},
          {"data", "What", &Train::data, "Data set: NAME:PATH, see --list data"},
          {"image_size", "What", &Train::image_size, "Side of the pictures; unset: the model's", 1},
          {"augment", "What", &Train::augment, "Transforms, see --list augment; none; default"},
          {"pretrained", "What", &Train::pretrained, "Weights to begin with: what fits of a file"}};
}

std::vector<Setting<Train>> length_rows() {
  return {{"epochs", "How long", &Train::epochs, "Passes over the training split", 1},
          {"num_iters", "How long", &Train::num_iters, "Ends after so many updates", 1},
          {"batch_size", "How long", &Train::batch_size, "Samples of a batch, per process", 1},
          {"accumulate", "How long", &Train::accumulate, "Batches of an update", 1},
          {"drop_last", "How long", &Train::drop_last, "Leaves out a short last batch"}};
}

std::vector<Setting<Train>> update_rows() {
  return {
      {"optimizer", "How it learns", &Train::optimizer, "See --list optimizers"},
      {"lr", "How it learns", &Train::lr, "Learning rate; unset: the optimizer's", 0},
      {"weight_decay", "How it learns", &Train::weight_decay, "Unset: the optimizer's", 0},
      {"schedule", "How it learns", &Train::schedule, "Of the rate: see --list schedules"},
      {"warmup", "How it learns", &Train::warmup, "Updates in which the rate rises from 0", 0},
      {"clip_norm", "How it learns", &Train::clip_norm, "Limit for the norm of all gradients", 0},
      {"label_smoothing",
       "How it learns",
       &Train::label_smoothing,
       "Share spread on all classes",
       0},
      {"ema",
       "How it learns",
       &Train::ema,
       "Evaluates and keeps an average of the weights: 0.999",
       0},
      {"sync_bn", "How it learns", &Train::sync_bn, "Batch norm over all processes"},
      {"memory_format",
       "How it learns",
       &Train::memory_format,
       "Order of pixels: auto, as_is, contiguous, channels_last",
       0,
       {"auto", "as_is", "contiguous", "channels_last"}},
      {"amp",
       "How it learns",
       &Train::amp,
       "Mixed precision of the network: off, bfloat16",
       0,
       {"off", "bfloat16"}},
      {"seed", "How it learns", &Train::seed, "Of weights, order, augmentation and dropout", 0}};
}

std::vector<Setting<Train>> run_rows() {
  return {{"run_dir",
           "What it leaves",
           &Train::run_dir,
           "Folder for weights, checkpoints, figures; none; auto: runs/<time>"},
          {"save_freq",
           "What it leaves",
           &Train::save_freq,
           "Updates between two checkpoints; after each epoch anyhow",
           1},
          {"keep_last", "What it leaves", &Train::keep_last, "Checkpoints that stay; 0: all", 0},
          {"resume",
           "What it leaves",
           &Train::resume,
           "Goes on where the run's newest checkpoint ends: never, auto, must",
           0,
           {"never", "auto", "must"}},
          {"eval_freq", "What it says", &Train::eval_freq, "Epochs between two evaluations", 1},
          {"eval_batch_size", "What it says", &Train::eval_batch_size, "Unset: batch_size", 1},
          {"log_freq", "What it says", &Train::log_freq, "Batches between two lines", 1},
          {"verbose",
           "What it says",
           &Train::verbose,
           "0 the result only, 1 a bar, 2 lines, 3 with times",
           0},
          {"num_workers", "What it says", &Train::num_workers, "Loader threads, per process", 0}};
}

template <typename S>
std::vector<Setting<S>> evaluate_rows() {
  return {
      {"data", "What", &S::data, "Data set, NAME:PATH; unset: the run's"},
      {"split", "What", &S::split, "train, valid, test; unset: the one that it was evaluated on"},
      {"model", "What", &S::model, "Model; unset: the run's"},
      {"image_size", "What", &S::image_size, "Side of the pictures; unset: the run's", 1},
      {"batch_size", "How", &S::batch_size, "Samples of a batch, per process", 1},
      {"amp",
       "How",
       &S::amp,
       "Mixed precision: off, bfloat16; unset: the run's, off without one",
       0,
       {"off", "bfloat16"}},
      {"num_workers", "How", &S::num_workers, "Loader threads, per process", 0},
      {"verbose", "How", &S::verbose, "0 silent, 1 a bar, 2 lines", 0}};
}

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

const SettingTable<TrainSettings>& train_table() {
  static const SettingTable<TrainSettings> table("recipes.train", [] {
    std::vector<Setting<Train>> rows;
    for (const auto& some : {model_rows(), length_rows(), update_rows(), run_rows()}) {
      rows.insert(rows.end(), some.begin(), some.end());
    }
    return rows;
  }());
  return table;
}

const SettingTable<EvaluateSettings>& evaluate_table() {
  static const SettingTable<EvaluateSettings> table("recipes.evaluate", [] {
    auto rows = evaluate_rows<EvaluateSettings>();
    rows.push_back({"num_iters",
                    "How",
                    &EvaluateSettings::num_iters,
                    "The first batches of each process only",
                    1});
    return rows;
  }());
  return table;
}

const SettingTable<PredictSettings>& predict_table() {
  using S = PredictSettings;
  static const SettingTable<PredictSettings> table("recipes.predict", [] {
    std::vector<Setting<S>> rows = evaluate_rows<S>();
    rows.push_back({"out", "Results", &S::out, "File .csv or .jsonl; unset: CSV, printed"});
    rows.push_back({"sheet", "Results", &S::sheet, "Picture .png of samples, predicted and true"});
    rows.push_back({"sheet_size", "Results", &S::sheet_size, "Pictures on it", 1});
    rows.push_back({"topk", "Results", &S::topk, "Classes named for each picture", 1});
    return rows;
  }());
  return table;
}

nlohmann::ordered_json read_options(const std::string& from) {
  const std::string path = file_of_options(from);
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw ConfigError("recipes.config", fmt::format("{}: {}", path, errno_message(errno)));
  }
  nlohmann::ordered_json json;
  try {
    json = nlohmann::ordered_json::parse(file);
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

}  // namespace argosy::recipes
