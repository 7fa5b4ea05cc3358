#include "argosy/recipes/server_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/recipes/click_records.h"
#include "argosy/runs/run_folder.h"
#include "argosy/train/callbacks/earlier_lines.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

using nlohmann::ordered_json;

std::string lines_path(const std::string& folder, int64_t step) {
  if (step == 0) {  // of another training
    runs::move_away_servers(folder);
  }
  std::string path = folder + "/" + runs::kServerFigures;
  train::detail::keep_lines_until(path, step, step_of_line);
  return path;
}

ordered_json figures_of(const ps::ServerStat& server, std::optional<double> pushes_per_second) {
  ordered_json figures;
  for (const ps::TableStat& table : server.tables) {
    figures[table.name + "_rows"] = table.rows;
    figures[table.name + "_bytes"] = table.bytes;
  }
  if (pushes_per_second.has_value()) {
    figures["pushes_per_second"] = *pushes_per_second;
  }
  figures["workers_apart"] = server.apart;
  return figures;
}

}  // namespace

ServerRecords::ServerRecords(const std::string& folder, int64_t step)
    : folder_(folder), lines_(lines_path(folder, step)) {}

void ServerRecords::add(int64_t step, std::span<const ps::ServerStat> servers) {
  const Clock::time_point now = Clock::now();
  before_.resize(servers.size());
  ordered_json latest = ordered_json::array();
  for (size_t i = 0; i < servers.size(); ++i) {
    const ps::ServerStat& server = servers[i];
    ordered_json about{{"server", i}, {"state", server.lives ? "alive" : "gone"}};
    if (server.lives) {
      std::optional<double> rate;
      if (before_[i].has_value()) {
        // A process that was started again counts from 0.
        const uint64_t since =
            server.pushes >= before_[i]->pushes ? before_[i]->pushes : uint64_t{0};
        const double seconds = std::chrono::duration<double>(now - before_[i]->at).count();
        rate = static_cast<double>(server.pushes - since) / std::max(seconds, 1e-3);
      }
      const ordered_json figures = figures_of(server, rate);
      lines_.write({{"step", step}, {"split", fmt::format("server {}", i)}, {"metrics", figures}});
      about.update(figures);
    }
    before_[i] =
        server.lives ? std::optional(Seen{.pushes = server.pushes, .at = now}) : std::nullopt;
    latest.push_back(std::move(about));
  }
  runs::write_servers_file(folder_, latest);
}

}  // namespace argosy::recipes
