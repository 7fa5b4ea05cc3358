#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "argosy/fleet/fleet.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::fleet {

/// Runs `fn` in `ranks` processes that have joined one job.
inline void run_job(int ranks,
                    const std::function<void(const std::string& folder)>& fn,
                    const DistributedStrategy& strategy = {}) {
  const test::TempDir folder;
  test::run_ranks(ranks,
                  [&](int rank) {
                    init(strategy,
                         {.init_method = "file://" + folder.path().string() + "/store",
                          .timeout = std::chrono::seconds(20),
                          .rank = rank,
                          .world_size = ranks});
                    fn(folder.path().string());
                    stop_worker();
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
}

}  // namespace argosy::fleet
