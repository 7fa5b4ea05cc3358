#pragma once

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "argosy/rpc/lane.h"
#include "argosy/rpc/served_call.h"
#include "argosy/rpc/shared_line.h"

namespace argosy::rpc {

/// Serves the calls that come through one lane. Internal to the room.
class LaneServer final {
 public:
  /// `line`: by which the caller shares memory. `most_bytes`: of one call.
  /// Lifetime: `dispatcher` stays until close() has returned.
  LaneServer(std::unique_ptr<Lane> lane,
             std::shared_ptr<SharedLine> line,
             Dispatcher& dispatcher,
             size_t most_bytes);
  /// Waits for the functions that run in its threads.
  ~LaneServer();
  LaneServer(const LaneServer&) = delete;
  LaneServer& operator=(const LaneServer&) = delete;
  LaneServer(LaneServer&&) = delete;
  LaneServer& operator=(LaneServer&&) = delete;

  /// Tells the caller that nothing more is served, and the functions that nobody waits for them.
  void close();
  /// True when it is closed and its threads have ended.
  [[nodiscard]] bool is_finished() const;

 private:
  class State;
  class Call;

  const std::shared_ptr<State> state_;
  std::vector<std::thread> threads_{};
};

}  // namespace argosy::rpc
