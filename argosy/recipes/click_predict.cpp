#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/os/whole_file.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recipes/description.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using nlohmann::ordered_json;

/// What a run's recipe says, and what the user says beside it.
TrainSettings settings_of(const EvaluateSettings& given) {
  const std::optional<StoredRecipe> run = find_description(given.weights);
  TrainSettings settings = run.has_value() ? run->settings : TrainSettings();
  if (!given.model.empty()) {
    settings.model = given.model;
  }
  if (!given.data.empty()) {
    settings.data = given.data;
  } else if (!settings.val.empty()) {
    settings.data = settings.val;
  }
  return settings;
}

void refuse_what_is_not_of_clicks(const EvaluateSettings& given) {
  for (const auto& [option, is_given] :
       {std::pair("--split", !given.split.empty()),
        std::pair("--image_size", given.image_size.has_value()),
        std::pair("--amp", !given.amp.empty() && given.amp != "off"),
        std::pair("--device", given.device != "auto" && given.device != "cpu"),
        std::pair("--num_workers", given.num_workers != EvaluateSettings().num_workers),
        std::pair("--verbose", given.verbose != EvaluateSettings().verbose)}) {
    ARGOSY_CHECK(!is_given,
                 "recipes.restore",
                 "{} does nothing for a model of clicks: a log has no splits and no pictures, one "
                 "thread reads it without a bar, and its rows are read in 32 bits on the CPU",
                 option);
  }
}

/// A model whose rows are those of a checkpoint: this process has them itself.
class RestoredClicks final {
 public:
  explicit RestoredClicks(const EvaluateSettings& given)
      : settings_(settings_of(given)),
        weights_(newest_checkpoint(given.weights)),
        parts_(click_parts(settings_)),
        training_(*parts_.model,
                  parts_.optimizer,
                  {.roles = alone(settings_), .backup = false, .initial = weights_}) {
    const ClickLogSpec log = click_log("--data", settings_.data);
    log_ = {
        .path = log.path, .batch_size = given.batch_size.value_or(kClickBatch), .limit = log.limit};
    if (given.num_iters.has_value()) {
      const int64_t most = *given.num_iters * log_.batch_size;
      log_.limit = log_.limit == 0 ? most : std::min(most, log_.limit);
    }
  }

  [[nodiscard]] recommend::ClickModelImpl& model() { return *parts_.model; }
  [[nodiscard]] const recommend::ClickLog& log() const { return log_; }
  [[nodiscard]] const std::string& weights() const { return weights_; }
  [[nodiscard]] const TrainSettings& settings() const { return settings_; }
  void stop() { training_.stop(); }

 private:
  static ps::Roles alone(const TrainSettings& settings) {
    ARGOSY_CHECK(!ps::Roles::are_set() && env::get("WORLD_SIZE").value_or("1") == "1",
                 "recipes.restore",
                 "one process reads the checkpoint and the log: start it without argosy launch");
    check_click_log("--data", settings.data);
    return ps::Roles::alone();
  }

  const TrainSettings settings_;
  const std::string weights_;
  ClickParts parts_;
  ps::ServedTraining training_;
  recommend::ClickLog log_{};
};

/// A file that appears whole, or standard output.
class PredictionLines final {
 public:
  explicit PredictionLines(std::string path) : path_(std::move(path)) {
    const std::string end = std::filesystem::path(path_).extension().string();
    const bool printed = path_.empty() || path_ == "-";
    ARGOSY_CHECK(printed || end == ".csv" || end == ".jsonl",
                 "recipes.predict",
                 "--out {}: expected a name that ends with .csv or .jsonl",
                 path_);
    is_json_ = end == ".jsonl";
    if (!printed) {
      file_ = std::make_unique<os::WholeFile>(
          os::WholeFile::create(path_).or_throw<DataError>("recipes.predict", DataPlace{path_}));
    }
    if (!is_json_) {
      write("index,label,probability\n");
    }
  }

  void add(const formats::ClickBatch& batch, const at::Tensor& odds) {
    const at::Tensor chances = at::sigmoid(odds.to(at::kDouble)).contiguous();
    const auto* const chance = chances.data_ptr<double>();
    std::string text;
    for (size_t row = 0; row < batch.size(); ++row, ++index_) {
      const int label = batch.clicked[row] > 0 ? 1 : 0;
      // NaN is no number of JSON.
      const std::string told =
          is_json_ && !std::isfinite(chance[row]) ? "null" : fmt::format("{:.6f}", chance[row]);
      text += is_json_
                  ? fmt::format(
                        "{{\"index\":{},\"label\":{},\"probability\":{}}}\n", index_, label, told)
                  : fmt::format("{},{},{}\n", index_, label, told);
    }
    write(text);
  }

  void finish() {
    if (file_ != nullptr) {
      file_->commit().or_throw<DataError>("recipes.predict", DataPlace{path_});
    }
  }

 private:
  void write(const std::string& text) {
    if (file_ != nullptr) {
      file_->write(text);
      file_->status().or_throw<DataError>("recipes.predict", DataPlace{path_});
    } else {
      (void)std::fwrite(text.data(), 1, text.size(), stdout);  // the command looks at the end
    }
  }

  std::string path_;
  bool is_json_ = false;
  std::unique_ptr<os::WholeFile> file_{};
  int64_t index_ = 0;
};

}  // namespace

std::string newest_checkpoint(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (checkpoint::is_checkpoint(path)) {
    return path;
  }
  for (const fs::path& folder : {fs::path(path) / "checkpoints", fs::path(path)}) {
    if (!fs::is_directory(folder, error)) {
      continue;
    }
    // Its bytes are checked as they are read.
    for (const checkpoint::Inspected& each :
         checkpoint::list(folder.string(), checkpoint::Check::kSizes)) {
      if (each.state == checkpoint::State::kWhole) {
        return each.path;
      }
    }
  }
  throw CheckpointError(
      "recipes.restore",
      fs::exists(path, error) ? "has no whole checkpoint of tables" : "No such file or folder",
      {path});
}

ordered_json evaluate_clicks(const EvaluateSettings& settings) {
  refuse_what_is_not_of_clicks(settings);
  RestoredClicks restored(settings);
  const recommend::ClickScores scores = recommend::scores_on(restored.model(), restored.log());
  restored.stop();
  return {{"command", "evaluate"},
          {"weights", restored.weights()},
          {"model", restored.settings().model},
          {"data", restored.settings().data},
          {"split", restored.log().path},
          {"samples", scores.lines()},
          {"processes", 1},
          {"result", {{"loss", scores.log_loss()}, {"auc", scores.auc()}}}};
}

ordered_json predict_clicks(const PredictSettings& settings,
                            const std::vector<std::string>& files) {
  refuse_what_is_not_of_clicks(settings);
  const PredictSettings usual;
  ARGOSY_CHECK(files.empty() && settings.sheet.empty() && settings.submission.empty() &&
                   settings.topk == usual.topk && settings.sheet_size == usual.sheet_size,
               "recipes.predict",
               "pictures, --sheet, --sheet_size, --submission and --topk are about pictures. The "
               "log to predict: --data criteo:FILE");
  PredictionLines out(settings.out);
  RestoredClicks restored(settings);
  const int64_t lines =
      recommend::for_each_odds(restored.model(),
                               restored.log(),
                               [&](const formats::ClickBatch& batch,
                                   const recommend::ClickInputs& /*inputs*/,
                                   const at::Tensor& odds) { out.add(batch, odds); });
  out.finish();
  restored.stop();
  return {{"command", "predict"},
          {"weights", restored.weights()},
          {"samples", lines},
          {"processes", 1},
          {"out", settings.out}};
}

}  // namespace argosy::recipes
