#include "argosy/rendezvous/former_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::rendezvous {
namespace {

struct Job {
  std::string place{};
  int rank = 0;
  std::string id{};
  std::weak_ptr<Store> store{};
};

std::mutex mutex;

std::vector<Job>& jobs() {
  static auto* const all = new std::vector<Job>;  // a static group may join or leave late
  return *all;
}

template <typename Is>
bool any_job(Is is) {
  const std::lock_guard lock(mutex);
  return std::any_of(jobs().begin(), jobs().end(), is);
}

}  // namespace

std::string new_job_id() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}-{}", random(), random(), getpid());
}

void remember_job(const std::string& place,
                  int rank,
                  const std::string& job,
                  const std::weak_ptr<Store>& store) {
  const std::lock_guard lock(mutex);
  jobs().push_back({place, rank, job, store});
}

bool was_at(const std::string& place, int rank) {
  return any_job([&](const Job& job) { return job.rank == rank && job.place == place; });
}

bool was_in(const std::string& job, int rank) {
  return any_job([&](const Job& one) { return one.rank == rank && one.id == job; });
}

void refuse_unless_left(const std::string& place, int rank) {
  const bool held = any_job([&](const Job& job) {
    return job.rank == rank && job.place == place && !job.store.expired();
  });
  if (held) {
    throw UsageError("rendezvous.join",
                     fmt::format("this process is still in the job that it joined at {}. Destroy "
                                 "its group, and the groups made from it, before you join again.",
                                 place));
  }
}

}  // namespace argosy::rendezvous
