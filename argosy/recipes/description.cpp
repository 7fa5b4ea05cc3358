#include "argosy/recipes/description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/whole_file.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recipes/schedules.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// Of a language model, and of one of clicks, the settings say all.
bool is_of_pictures(const StoredRecipe& about) {
  return !about.settings.sequence_length.has_value() && !is_of_clicks(about.settings);
}

ordered_json to_json(const StoredRecipe& about) {
  ordered_json json{{"options", recipes::to_json(about.settings)}};
  if (is_of_pictures(about)) {
    json.update({{"shape",
                  {{"side", about.shape.side},
                   {"channels", about.shape.channels},
                   {"repeats", about.shape.repeats},
                   {"mean", about.shape.mean},
                   {"std", about.shape.std}}},
                 {"outputs", about.sizes.outputs},
                 {"tags", about.task == Task::kTags},
                 {"classes", about.classes},
                 {"points", about.point_names}});
  }
  json["changes"] = about.changes;
  return json;
}

StoredRecipe from_json(const ordered_json& json, const std::string& file) {
  StoredRecipe about;
  take_options(about.settings, json.at("options"), file);
  about.changes = json.value("changes", std::vector<std::string>{});
  if (!is_of_pictures(about)) {
    return about;
  }
  const ordered_json& shape = json.at("shape");
  about.shape = {.side = shape.at("side").get<int>(),
                 .channels = shape.at("channels").get<int>(),
                 .repeats = shape.at("repeats").get<bool>(),
                 .mean = shape.at("mean").get<std::vector<double>>(),
                 .std = shape.at("std").get<std::vector<double>>()};
  about.sizes = {.outputs = json.at("outputs").get<int64_t>(), .channels = about.shape.channels};
  about.classes = json.at("classes").get<std::vector<std::string>>();
  about.point_names = json.at("points").get<std::vector<std::string>>();
  about.task = !about.point_names.empty()  ? Task::kPoints
               : json.value("tags", false) ? Task::kTags
                                           : Task::kClass;
  return about;
}

}  // namespace

void write_description(const std::string& folder, const StoredRecipe& description) {
  const std::string text = to_json(description).dump(2) + "\n";
  const std::string path = (fs::path(folder) / kDescriptionFile).string();
  os::write_whole(path, text).or_throw<DataError>("recipes.write", DataPlace{path});
}

std::optional<StoredRecipe> read_description(const std::string& folder) {
  const fs::path file = fs::path(folder) / kDescriptionFile;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    return std::nullopt;
  }
  try {
    return from_json(
        ordered_json::parse(os::read_file(file.string()).or_throw<ConfigError>("recipes.config")),
        file.string());
  } catch (const nlohmann::json::exception& wrong) {
    throw ConfigError(
        "recipes.config",
        fmt::format("{}: expected what argosy train wrote: {}", file.string(), wrong.what()));
  }
}

std::optional<StoredRecipe> find_description(const std::string& path) {
  constexpr int kLevels = 3;
  std::error_code error;
  fs::path folder = fs::absolute(path, error);
  folder = folder.has_filename() ? folder : folder.parent_path();
  for (int level = 0; level < kLevels; ++level, folder = folder.parent_path()) {
    if (std::optional<StoredRecipe> found = read_description(folder.string())) {
      return found;
    }
  }
  return std::nullopt;
}

std::string changed_options(TrainSettings begun, const TrainSettings& now) {
  begun.num_iters = now.num_iters;
  begun.run_dir = now.run_dir;
  begun.resume = now.resume;
  begun.save_freq = now.save_freq;
  begun.keep_last = now.keep_last;
  begun.eval_freq = now.eval_freq;
  begun.eval_batch_size = now.eval_batch_size;
  begun.log_freq = now.log_freq;
  begun.verbose = now.verbose;
  begun.num_workers = now.num_workers;
  begun.mesh = now.mesh;  // whoever has which part, the bits are the same
  begun.sharding_stage = now.sharding_stage;
  begun.recompute = now.recompute;
  begun.sample = now.sample;
  if (now.virtual_ranks == 0) {  // the training's own
    begun.virtual_ranks = 0;
  }
  if (!depends_on_length(now.schedule)) {
    begun.epochs = now.epochs;
  }
  const ordered_json before = recipes::to_json(begun);
  const ordered_json after = recipes::to_json(now);
  std::vector<std::string> changes;
  for (const auto& [name, value] : after.items()) {
    if (before.at(name) != value) {
      changes.push_back(
          fmt::format("--{} {} (was {})", name, value.dump(), before.at(name).dump()));
    }
  }
  return fmt::format("{}", fmt::join(changes, ", "));
}

}  // namespace argosy::recipes
