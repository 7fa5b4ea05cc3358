#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/comm/init.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/store.h"

#include "tests/support/error_text.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::comm::testing {

struct GroupOptions {
  bool checked = false;
  std::chrono::milliseconds timeout = std::chrono::seconds(20);
  std::vector<int> hosts{};  ///< as in ConnectOptions
};

/// Calls fn(world) on n threads, each with its rank's world over the in-process transport, or the
/// backend that ARGOSY_TEST_BACKEND names.
inline void with_threads(int n,
                         const std::function<void(Group&)>& fn,
                         const GroupOptions& options = {}) {
  const auto store = rendezvous::in_process_store();
  test::run_ranks(n, [&](int rank) {
    Group world = connect({.backend = env::get("ARGOSY_TEST_BACKEND").value_or("in_process"),
                           .hosts = options.hosts,
                           .store = store,
                           .rank = rank,
                           .size = n,
                           .timeout = options.timeout,
                           .checked = options.checked});
    fn(world);
  });
}

}  // namespace argosy::comm::testing
