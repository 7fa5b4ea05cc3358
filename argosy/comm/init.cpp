#include "argosy/comm/init.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/log.h"
#include "argosy/comm/backend.h"
#include "argosy/rendezvous/join.h"

namespace argosy::comm {
namespace {

/// Compares what all ranks must have chosen alike, or their first operation would hang. Rank 0
/// reads all and tells the verdict, so that every rank fails when one differs.
void agree(rendezvous::Store& store,
           int rank,
           int size,
           const std::string& mine,
           const Deadline& deadline) {
  static constexpr const char* kVerdict = "comm/verdict";
  std::string verdict;
  if (rank == 0) {
    for (int other = 1; other < size && verdict.empty(); ++other) {
      const std::string theirs = store.get(fmt::format("comm/settings/{}", other), deadline);
      if (theirs != mine) {
        verdict = fmt::format(
            "rank {} has {}, rank 0 has {}. Give all ranks the same options and "
            "the same ARGOSY_CHECKED.",
            other,
            theirs,
            mine);
      }
    }
    store.set(kVerdict, verdict, deadline);
  } else {
    store.set(fmt::format("comm/settings/{}", rank), mine, deadline);
    verdict = store.get(kVerdict, deadline);
  }
  if (!verdict.empty()) {
    throw ConfigError("comm.init", verdict);
  }
}

}  // namespace

Group init(const InitOptions& options) {
  ARGOSY_CHECK(options.timeout > std::chrono::milliseconds(0),
               "comm.init",
               "timeout must be positive, got {} ms",
               options.timeout.count());
  ARGOSY_CHECK(options.backend != "in_process",
               "comm.init",
               "backend \"in_process\" joins threads, not processes. Use comm::connect().");
  (void)find_backend(options.backend);  // a typing error shows before anybody waits
  const bool checked = options.checked || env::get_bool("ARGOSY_CHECKED").value_or(false);
  const Deadline deadline = Deadline::after(options.timeout);
  rendezvous::Joined joined = rendezvous::join(
      {.method = options.init_method, .rank = options.rank, .world_size = options.world_size},
      deadline);
  if (joined.world_size > 1) {
    log::set_identity(fmt::format("rank {}", joined.rank));
    agree(*joined.store,
          joined.rank,
          joined.world_size,
          fmt::format("backend {} and checked mode {}", options.backend, checked ? "on" : "off"),
          deadline);
  }
  return connect({.backend = options.backend,
                  .store = std::move(joined.store),
                  .rank = joined.rank,
                  .size = joined.world_size,
                  .name = "world",
                  .timeout = options.timeout,
                  .checked = checked,
                  .keep = std::shared_ptr<void>(std::move(joined.presence))});
}

}  // namespace argosy::comm
