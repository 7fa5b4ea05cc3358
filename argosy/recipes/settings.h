#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/program/option.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::recipes {

/// What `argosy train` is told: names of the tables' entries and numbers. What is not set follows
/// from the model, the data or the optimizer.
struct TrainSettings {
  std::string model{};
  std::string data{};
  std::string optimizer = "adam";
  std::string schedule = "constant";
  std::string augment = "default";
  std::string pretrained{};             ///< file of weights to begin with, what fits of it
  std::optional<int64_t> image_size{};  ///< pixels of both edges
  int64_t batch_size = 32;              ///< per process
  std::optional<int64_t> eval_batch_size{};
  int64_t epochs = 10;
  std::optional<int64_t> num_iters{};  ///< ends after so many updates; schedules do not see it
  std::optional<double> lr{};
  std::optional<double> weight_decay{};
  int64_t warmup = 0;      ///< updates
  int64_t accumulate = 1;  ///< batches of an update
  std::optional<double> clip_norm{};
  double label_smoothing = 0;
  std::optional<double> ema{};  ///< decay of an average of the weights
  bool drop_last = false;
  bool sync_bn = false;
  std::string memory_format = "auto";
  std::string amp = "off";
  int64_t seed = 1;
  int64_t num_workers = 2;
  int64_t eval_freq = 1;
  int64_t log_freq = 10;
  int64_t verbose = 2;
  std::string run_dir = "auto";        ///< "none": nothing is written
  std::optional<int64_t> save_freq{};  ///< updates between two checkpoints; after epochs anyhow
  int64_t keep_last = 3;               ///< checkpoints that stay; 0: all
  std::string resume = "never";
};

/// What `argosy evaluate` is told.
struct EvaluateSettings {
  std::string weights{};  ///< run, checkpoint or file of weights
  std::string data{};     ///< empty: the run's, likewise below
  std::string model{};
  std::string split{};
  std::optional<int64_t> image_size{};
  int64_t batch_size = 64;
  std::optional<int64_t> num_iters{};
  std::string amp{};
  int64_t num_workers = 2;
  int64_t verbose = 0;
};

/// What `argosy predict` is told, beside what evaluate is.
struct PredictSettings : EvaluateSettings {
  std::string out{};         ///< .csv, .jsonl; empty or "-": CSV on standard output
  std::string sheet{};       ///< .html; empty: none
  int64_t sheet_size = 48;   ///< pictures on it
  int64_t topk = 1;          ///< classes named for each picture
  std::string submission{};  ///< folder of Kaggle's facial keypoints: `out` is what is handed in
};

/// The options of the commands, whose values go into `settings`.
[[nodiscard]] program::Options options_of(TrainSettings& settings);
[[nodiscard]] program::Options options_of(EvaluateSettings& settings);
[[nodiscard]] program::Options options_of(PredictSettings& settings);

/// {"model": …}: what a run stores and read_options() gives back.
[[nodiscard]] nlohmann::ordered_json to_json(TrainSettings settings);

/// Options out of a file: an object of them, a run's recipe.json, or its run.json or folder, which
/// stand for the recipe.json beside or in them.
/// Errors: ConfigError with the path: no such file, no JSON, no object; UsageError of the options.
[[nodiscard]] nlohmann::ordered_json read_options(const std::string& from);

}  // namespace argosy::recipes
