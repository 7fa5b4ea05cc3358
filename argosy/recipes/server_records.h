#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/events/jsonl_writer.h"
#include "argosy/ps/table_server.h"

// Internal to the room.
namespace argosy::recipes {

/// What a run's folder has of its servers: servers.jsonl, a line for each at every look, and
/// servers.json, the latest of all. One worker writes them, so they outlive a server.
class ServerRecords final {
 public:
  /// Begins at `step`: lines of later steps are taken out. Errors: DataError.
  ServerRecords(const std::string& folder, int64_t step);

  /// Adds what the servers told at that step. Errors: DataError.
  void add(int64_t step, std::span<const ps::ServerStat> servers);

 private:
  using Clock = std::chrono::steady_clock;
  struct Seen {
    uint64_t pushes = 0;
    Clock::time_point at{};
  };

  std::string folder_;
  events::JsonlWriter lines_;
  std::vector<std::optional<Seen>> before_{};  ///< by server
};

}  // namespace argosy::recipes
