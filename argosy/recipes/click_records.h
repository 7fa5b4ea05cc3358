#pragma once

#include <chrono>
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
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_page.h"

#include <nlohmann/json.hpp>

// Internal to the room.
namespace argosy::recipes {

/// Returns the step of a line of a log, for train::detail::keep_lines_until().
[[nodiscard]] std::optional<int64_t> step_of_line(const std::string& line);

/// The records of a training with servers, as fit() leaves them for others: run.json, recipe.json,
/// metrics.jsonl, a file for each worker, the page. The first worker writes all but the others'
/// files. What cannot be written is said once, and the training goes on.
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
  /// Writes what this worker says about itself, and the page, if it is time; before, the first
  /// worker calls `ask` for what its servers tell. True: it did.
  bool write_now_and_then(int64_t step,
                          const std::function<nlohmann::ordered_json()>& about,
                          const std::function<std::vector<ps::ServerStat>()>& ask);
  void add_servers(int64_t step, std::span<const ps::ServerStat> servers);
  void end(runs::RunState state,
           const std::string& why,
           std::optional<int> exit_code,
           const nlohmann::ordered_json& about);

 private:
  using Clock = std::chrono::steady_clock;
  void begin_run(const TrainSettings& resolved, int64_t step);
  void write_all(const nlohmann::ordered_json& about);
  void forgive(const std::function<void()>& write);

  const std::string folder_;
  const ps::Roles roles_;
  std::optional<runs::RunConfig> config_{};  ///< of the first worker, as the next three
  std::optional<events::JsonlWriter> metrics_{};
  std::optional<ServerRecords> servers_{};
  std::optional<runs::RunPage> page_{};
  Clock::time_point next_write_{};
  bool told_ = false;
};

}  // namespace argosy::recipes
