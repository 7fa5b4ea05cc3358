#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "argosy/program/command_line.h"
#include "argosy/program/option.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::recipes {

/// The settings of `argosy train`: names of table entries, and numbers. Unset ones follow from the
/// model, the data or the optimizer.
struct TrainSettings {
  std::string model{};
  std::string data{};
  std::string optimizer = "adam";
  std::string schedule = "constant";
  std::string augment = "default";
  std::string traffic = "none";         ///< a strategy that saves traffic, by name
  std::string pretrained{};             ///< file of weights to begin with; only what fits is used
  std::optional<int64_t> image_size{};  ///< side of the pictures, in pixels
  std::string tokenizer = "bytes";      ///< see text::open_tokenizer()
  std::optional<int64_t> sequence_length{};  ///< tokens of a window of text
  std::string val{};   ///< of clicks: the log of evaluations, "criteo:FILE"; empty: none
  std::string mode{};  ///< of clicks: when servers update, sync, async or half_async; empty: sync
  std::optional<int64_t> staleness{};       ///< with half_async; unset: 8
  std::string mesh{};                       ///< "dp=2,sharding=2"; empty: dp only
  std::optional<int64_t> sharding_stage{};  ///< of the mesh's axis "sharding"; unset: 3
  std::string offload_folder{};             ///< of the optimizer's state; empty: in memory
  bool recompute = false;                   ///< blocks of a language model, in backward
  std::string sample{};       ///< text that a language model continues after each epoch
  int64_t batch_size = 32;    ///< per virtual rank
  int64_t virtual_ranks = 0;  ///< 0: the resumed training's, or one for each process
  std::optional<int64_t> eval_batch_size{};
  int64_t epochs = 10;
  std::optional<int64_t>
      num_iters{};  ///< the training ends after this many updates; schedules ignore it
  std::optional<double> lr{};
  std::optional<double> weight_decay{};
  int64_t warmup = 0;      ///< updates
  int64_t accumulate = 1;  ///< batches per update
  std::optional<double> clip_norm{};
  double label_smoothing = 0;
  std::optional<double> ema{};  ///< decay of the average of weights
  bool drop_last = false;
  bool sync_bn = false;
  std::string memory_format = "auto";
  std::string amp = "off";
  std::string device = "auto";  ///< see engine::find_device()
  int64_t seed = 1;
  int64_t num_workers = 2;
  int64_t eval_freq = 1;
  int64_t log_freq = 10;
  int64_t verbose = 2;
  std::string run_dir = "auto";  ///< "none": nothing is written
  std::optional<int64_t>
      save_freq{};        ///< updates between two checkpoints; there is one after each epoch anyway
  int64_t keep_last = 3;  ///< number of checkpoints to keep; 0: all
  std::string resume = "never";

  [[nodiscard]] int64_t stage() const { return sharding_stage.value_or(3); }
};

/// The batch of an evaluation of pictures or text, unless the user gives one.
inline constexpr int64_t kEvaluationBatch = 64;

/// The settings of `argosy evaluate`.
struct EvaluateSettings {
  std::string weights{};  ///< run, checkpoint or file of weights
  std::string data{};     ///< empty: the run's; the same applies below
  std::string model{};
  std::string split{};
  std::optional<int64_t> image_size{};
  std::optional<int64_t> batch_size{};  ///< unset: 64; of clicks 4096
  std::optional<int64_t> num_iters{};
  std::string amp{};
  std::string device = "auto";
  int64_t num_workers = 2;
  int64_t verbose = 0;
};

/// The settings of `argosy predict`, in addition to those of evaluate.
struct PredictSettings : EvaluateSettings {
  std::string out{};         ///< .csv, .jsonl; empty or "-": CSV on standard output
  std::string sheet{};       ///< .html; empty: none
  int64_t sheet_size = 48;   ///< pictures on the sheet
  int64_t topk = 1;          ///< classes named for each picture
  std::string submission{};  ///< folder of Kaggle's facial keypoints; `out` is then a submission
};

/// The settings of `argosy generate`. The last ones are those of text::GenerateOptions.
struct GenerateSettings {
  std::string checkpoint{};  ///< run, checkpoint, file of weights or folder of Hugging Face
  std::string prompt{};      ///< empty: the end of a text, behind which another one begins
  std::string model{};       ///< empty: the run's; the same applies to the tokenizer
  std::string tokenizer{};
  std::string device = "auto";
  std::optional<int64_t> max_new_tokens{};  ///< unset: what the model's context leaves
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  int64_t seed = 0;
};

/// Return the options of the commands. Their values go into `settings`.
[[nodiscard]] program::Options options_of(TrainSettings& settings);
[[nodiscard]] program::Options options_of(EvaluateSettings& settings);
[[nodiscard]] program::Options options_of(PredictSettings& settings);
[[nodiscard]] program::Options options_of(GenerateSettings& settings);

/// Returns {"model": …}, which a run stores and read_options() reads.
[[nodiscard]] nlohmann::ordered_json to_json(TrainSettings settings);

/// Reads options from a file: an object of options or a run's recipe.json. For a run's folder or
/// its run.json it reads the recipe.json there.
/// Errors: ConfigError with the path when there is no such file, it is not JSON or not an object;
/// UsageError for the options.
[[nodiscard]] nlohmann::ordered_json read_options(const std::string& from);

/// Replaces the settings that `json` has, which comes out of `file`.
/// Errors: ConfigError with the file for a name or a value that is wrong.
void take_options(TrainSettings& settings,
                  const nlohmann::ordered_json& json,
                  const std::string& file);

/// Reads a command's words, as program::parse_or_help() does. `options` are those of the settings
/// and the command's own; --config FILE comes beside them, over which the other words win. The
/// file's stage goes with its mesh: --mesh without the axis sharding replaces both.
/// Errors: those of parse_or_help(), read_options() and take_options().
[[nodiscard]] bool parse_with_config(const program::HelpText& about,
                                     program::Options options,
                                     const std::vector<std::string>& words,
                                     TrainSettings& settings);

}  // namespace argosy::recipes
