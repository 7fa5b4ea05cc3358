#pragma once

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/rendezvous/store_server.h"

#include "tests/support/owned_port.h"
#include "tests/support/run_ranks.h"
#include "tests/support/shared_counter.h"

namespace argosy::test {

inline void set_variable(const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): in a rank's only thread
}

/// Runs fn on n processes whose environment is what the launcher gives them: rank, number of ranks
/// and the gRPC store, which one more process hosts until `enders` ranks have ended.
inline std::vector<RankOutcome> launched_ranks(int n,
                                               int enders,
                                               const std::function<void(int)>& fn,
                                               std::chrono::milliseconds deadline) {
  const OwnedPort owned;
  SharedCounter ended;
  const auto rank_or_host = [&](int rank) {
    if (rank == n) {
      const auto server = rendezvous::StoreServer::start({.port = owned.port(), .token = "secret"});
      EXPECT_TRUE(ended.wait_for(enders));
      return;
    }
    set_variable("RANK", std::to_string(rank));
    set_variable("WORLD_SIZE", std::to_string(n));
    set_variable("ARGOSY_STORE", "127.0.0.1:" + std::to_string(owned.port()));
    set_variable("ARGOSY_TOKEN", "secret");
    set_variable("ARGOSY_RUN_ID", "1a2b:0");
    struct Count {
      explicit Count(SharedCounter& counter) : ended(counter) {}
      ~Count() { ended.add(1); }
      Count(const Count&) = delete;
      Count& operator=(const Count&) = delete;
      SharedCounter& ended;
    } const count(ended);
    fn(rank);
  };
  auto outcomes =
      try_run_ranks(n + 1, rank_or_host, {.mode = RankMode::kProcesses, .deadline = deadline});
  EXPECT_TRUE(outcomes.back().ok()) << describe(outcomes.back());
  outcomes.pop_back();
  return outcomes;
}

}  // namespace argosy::test
