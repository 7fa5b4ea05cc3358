#pragma once

#include <memory>
#include <string>

#include "argosy/rendezvous/store.h"

/// The jobs that this process took part in. A place (a folder or a port) serves one job after
/// another when a program leaves its group and joins again. No rank may take the job that it left
/// for the next one. Thread-safe.
namespace argosy::rendezvous {

/// Names one job at a place; no two are equal.
[[nodiscard]] std::string new_job_id();

/// Records that this process was in `job` at `place` as `rank`, and which `store` it holds for the
/// job.
void remember_job(const std::string& place,
                  int rank,
                  const std::string& job,
                  const std::weak_ptr<Store>& store);
/// True if this process was in any job at `place` as `rank`.
[[nodiscard]] bool was_at(const std::string& place, int rank);
/// True if this process was in this very job as `rank`.
[[nodiscard]] bool was_in(const std::string& job, int rank);
/// Throws UsageError when this process still holds the store of a job at `place`: the next job
/// there could never begin.
void refuse_unless_left(const std::string& place, int rank);

}  // namespace argosy::rendezvous
