#include "argosy/recipes/click_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/engine/version.h"
#include "argosy/os/fd.h"
#include "argosy/recipes/description.h"
#include "argosy/runs/run_folder.h"
#include "argosy/train/callbacks/earlier_lines.h"

namespace argosy::recipes {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// The recipe of this start, which says what has changed since the training began.
void write_recipe(const std::string& folder, const TrainSettings& resolved, int64_t step) {
  StoredRecipe recipe{.settings = resolved};
  std::optional<StoredRecipe> begun;
  try {
    begun = step > 0 ? read_description(folder) : std::nullopt;
  } catch (const Error& error) {  // no reason not to go on
    log::warn("[recipes.resume] {} It is written anew", error.what());
  }
  if (begun.has_value()) {
    recipe.changes = begun->changes;
    const std::string changes = changed_options(begun->settings, resolved);
    if (!changes.empty()) {
      recipe.changes.push_back(fmt::format("after step {}: {}", step, changes));
      log::warn("[recipes.resume] {} resumes with changed options: {}", folder, changes);
    }
  }
  write_description(folder, recipe);
}

}  // namespace

std::optional<int64_t> step_of_line(const std::string& line) {
  const ordered_json json = ordered_json::parse(line, nullptr, false);
  const auto step = json.is_object() ? json.find("step") : json.end();
  return step != json.end() && step->is_number_integer() ? std::optional(step->get<int64_t>())
                                                         : std::nullopt;
}

ClickRecords::ClickRecords(std::string folder,
                           const ps::Roles& roles,
                           const TrainSettings& resolved,
                           int64_t step)
    : folder_(std::move(folder)), roles_(roles) {
  if (!folder_.empty() && roles_.index == 0) {
    begin_run(resolved, step);
  }
}

void ClickRecords::begin_run(const TrainSettings& resolved, int64_t step) {
  const fs::path path = fs::absolute(folder_).lexically_normal();
  runs::RunConfig config = runs::RunConfig::capture(
      {.name = (path.has_filename() ? path : path.parent_path()).filename().string(),
       .ranks = roles_.workers});
  config.options = to_json(resolved);
  config.options["servers"] = roles_.own_server ? 0 : roles_.servers;
  config.versions["libtorch"] = engine::torch_version();
  config.seed = static_cast<uint64_t>(resolved.seed);
  if (step > 0) {
    try {
      config.resume(runs::read_run_config(folder_), step);
    } catch (const DataError&) {  // that is new here, or was torn: it begins now
    }
  }
  runs::write_run_config(folder_, config);
  runs::move_away_ranks(folder_, roles_.workers);
  write_recipe(folder_, resolved, step);
  train::detail::keep_lines_until(folder_ + "/metrics.jsonl", step, step_of_line);
  find_evaluation(step);
  metrics_.emplace(folder_ + "/metrics.jsonl");
  servers_.emplace(folder_, step);
  page_.emplace(folder_);
  config_ = std::move(config);
}

void ClickRecords::find_evaluation(int64_t step) {
  const Result<std::string> text = os::read_file(folder_ + "/metrics.jsonl");
  for (const std::string& line : strings::split(text.ok() && step > 0 ? *text : "", '\n')) {
    if (!line.empty() && step_of_line(line) == step) {
      ordered_json record = ordered_json::parse(line);
      if (record.value("split", "") == "eval" && record.contains("loss") &&
          record.contains("metrics") && record["metrics"].contains("auc")) {
        evaluation_ = std::move(record);
      }
    }
  }
}

void ClickRecords::add(const ordered_json& record) {
  if (metrics_.has_value()) {
    writer_.write([&] { metrics_->write(record); });
  }
}

bool ClickRecords::write_now_and_then(int64_t step,
                                      const std::function<ordered_json()>& about,
                                      const std::function<std::vector<ps::ServerStat>()>& ask) {
  if (!writer_.is_due()) {
    return false;
  }
  if (roles_.index == 0) {  // its progress shows them, with a folder or without
    add_servers(step, ask());
  }
  write(about());
  return true;
}

void ClickRecords::add_servers(int64_t step, std::span<const ps::ServerStat> servers) {
  if (servers_.has_value()) {
    writer_.write([&] { servers_->add(step, servers); });
  }
}

void ClickRecords::write(const ordered_json& about) {
  writer_.write_paced([&] {
    if (!folder_.empty()) {
      ordered_json all = about;
      if (!failed_at_.empty()) {
        all["failed"] = failed_at_;
        all["error"] = error_;
      }
      runs::write_rank_file(folder_, roles_.index, all);
    }
    if (page_.has_value()) {
      page_->write();
    }
  });
}

void ClickRecords::end(runs::RunState state, const std::string& why, std::optional<int> exit_code) {
  writer_.write([&] {
    if (!config_.has_value() || config_->state != runs::RunState::kRunning) {
      return;
    }
    const std::optional<std::string> cause = state == runs::RunState::kFinished ? std::nullopt
                                             : failed_at_.empty()
                                                 ? runs::first_failure(folder_)
                                                 : runs::first_failure(folder_, failed_at_);
    config_->end(cause.has_value() ? runs::RunState::kFailed : state,
                 cause.value_or(why),
                 cause.has_value() ? std::nullopt : exit_code);
    runs::write_run_config(folder_, *config_);
    page_->write();
  });
}

void ClickRecords::fail(const std::string& what, const ordered_json& about) {
  writer_.write([&] {
    error_ = what;
    failed_at_ = text::utc(std::chrono::system_clock::now());
  });
  write(about);
  end(runs::RunState::kFailed, what, std::nullopt);
}

}  // namespace argosy::recipes
