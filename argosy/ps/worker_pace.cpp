#include "argosy/ps/worker_pace.h"

#include <algorithm>
#include <limits>

namespace argosy::ps {

bool WorkerPace::none_has_pushed() const {
  return std::ranges::all_of(workers_, [](const Worker& one) { return one.pushes == 0; });
}

void WorkerPace::count(size_t worker) {
  Worker& one = workers_[worker];
  ++one.pushes;
  if (one.excused) {
    const uint64_t others = slowest();
    const bool has_others = others != std::numeric_limits<uint64_t>::max();
    one.excused = false;
    give_head_start(worker, has_others && others > one.pushes ? others - one.pushes : 0);
  }
}

void WorkerPace::give_head_start(size_t worker, uint64_t pushes) {
  workers_[worker].head_start = std::max(workers_[worker].head_start, pushes);
}

uint64_t WorkerPace::slowest() const {
  uint64_t slowest = std::numeric_limits<uint64_t>::max();
  for (const Worker& one : workers_) {
    if (!one.excused) {
      slowest = std::min(slowest, one.place());
    }
  }
  return slowest;
}

uint64_t WorkerPace::apart() const {
  uint64_t fastest = 0;
  for (const Worker& one : workers_) {
    if (!one.excused) {
      fastest = std::max(fastest, one.place());
    }
  }
  return fastest - std::min(fastest, slowest());
}

}  // namespace argosy::ps
