#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/events/jsonl_writer.h"
#include "argosy/ps/roles.h"
#include "argosy/recipes/server_records.h"
#include "argosy/recipes/settings.h"
#include "argosy/runs/best_effort_writer.h"
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_page.h"

#include <nlohmann/json.hpp>

// Internal to the room.
namespace argosy::recipes {

/// Returns the step of a line of a log, for train::detail::keep_lines_until().
[[nodiscard]] std::optional<int64_t> step_of_line(const std::string& line);

/// The records of a training with servers, as fit() leaves them for others: run.json, recipe.json,
/// metrics.jsonl, a file for each worker, the page. The first worker writes all but the others'
/// files. What cannot be written is said once, and the training goes on. end() may be called by any
/// thread, the rest by one.
class ClickRecords final {
 public:
  /// Begins at `step`: what the folder has of later steps is taken out. `folder`: empty for none.
  /// Errors: DataError when it cannot be begun.
  ClickRecords(std::string folder,
               const ps::Roles& roles,
               const TrainSettings& resolved,
               int64_t step);

  /// Adds a line to metrics.jsonl.
  void add(const nlohmann::ordered_json& record);
  /// Writes what this worker says about itself, and the page.
  void write(const nlohmann::ordered_json& about);
  /// Does so if it is time; before, the first worker calls `ask` for what its servers tell. True:
  /// it did.
  bool write_now_and_then(int64_t step,
                          const std::function<nlohmann::ordered_json()>& about,
                          const std::function<std::vector<ps::ServerStat>()>& ask);
  void add_servers(int64_t step, std::span<const ps::ServerStat> servers);
  /// Returns the figures of an evaluation that a training had made at this step before it was
  /// started again, as metrics.jsonl has them: "loss" and "auc" in "metrics". Null: none.
  [[nodiscard]] const nlohmann::ordered_json& earlier_evaluation() const { return evaluation_; }
  /// Records how the run ended, where nothing has been recorded before. A failure of another worker
  /// that came first is the cause.
  void end(runs::RunState state, const std::string& why, std::optional<int> exit_code);
  /// Records a failure of this worker.
  void fail(const std::string& what, const nlohmann::ordered_json& about);

 private:
  void begin_run(const TrainSettings& resolved, int64_t step);
  void find_evaluation(int64_t step);

  const std::string folder_;
  const ps::Roles roles_;
  std::optional<runs::RunConfig> config_{};  ///< of the first worker, as the next three
  std::optional<events::JsonlWriter> metrics_{};
  std::optional<ServerRecords> servers_{};
  std::optional<runs::RunPage> page_{};
  nlohmann::ordered_json evaluation_{};
  std::string failed_at_{};  ///< UTC; empty: this worker has not failed
  std::string error_{};
  runs::BestEffortWriter writer_{};
};

}  // namespace argosy::recipes
