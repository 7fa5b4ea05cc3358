#include "argosy/fleet/updates.h"

#include <algorithm>
#include <string>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"
#include "argosy/data/random.h"
#include "argosy/engine/seed.h"

namespace argosy::fleet::detail {
namespace {

constexpr const char* kWhere = "fleet.updates";

/// Batches that know nothing of virtual ranks are those of one for each process.
data::BatchTurns checked(data::BatchTurns turns) {
  const int64_t expected = virtual_ranks();
  if (turns.virtual_ranks == 0 && expected == worker_num()) {
    turns.virtual_ranks = expected;
    turns.first = worker_index();
  }
  ARGOSY_CHECK(turns.virtual_ranks == expected,
               kWhere,
               "the job has {} virtual ranks, and the loader's batches are dealt to {}. Give the "
               "loader fleet::distributed_batch_sampler(…)",
               expected,
               turns.virtual_ranks == 0 ? "processes" : std::to_string(turns.virtual_ranks));
  const auto own = data::BatchTurns::of(expected, worker_num(), worker_index(), turns.micros);
  ARGOSY_CHECK(turns.spare == own.spare,
               kWhere,
               "rank {} of {} is {}, and the loader's batches are those of {}. Give its sampler "
               ".num_replicas and .rank of this process",
               worker_index(),
               worker_num(),
               own.spare ? "a spare" : "no spare",
               turns.spare ? "one" : "none");
  ARGOSY_CHECK(
      turns == own,
      kWhere,
      "the loader's batches are those of virtual ranks {} to {}, and rank {} has {} to {}. "
      "Give its sampler .num_replicas and .rank of this process",
      turns.first,
      turns.first + turns.leaves - 1,
      worker_index(),
      own.first,
      own.first + own.leaves - 1);
  return turns;
}

/// A process with one virtual rank may leave batches out if the others do.
void check_is_next(int64_t batch, int64_t expected, const data::BatchTurns& turns) {
  ARGOSY_CHECK(batch == expected || (turns.leaves == 1 && batch > expected),
               kWhere,
               "batch {} of this process is missing, because none of its samples could be read. "
               "Mend the data, or give the loader .on_error = kReplace, which a stream cannot do",
               expected);
}

}  // namespace

uint64_t seed_of_job() {
  return std::stoull(comm::broadcast_object(std::to_string(engine::base_seed()), group()));
}

UpdatePlace::UpdatePlace(const data::BatchTurns& turns, int64_t epoch)
    : UpdatePlace(turns, epoch, seed_of_job()) {
  strict_ = true;
}

UpdatePlace::UpdatePlace(const data::BatchTurns& turns, int64_t epoch, uint64_t seed)
    : turns_(checked(turns)), epoch_(epoch), seed_(seed) {}

UpdatePlace::~UpdatePlace() {
  if (open_) {
    abandon_micro_batches();
  }
}

void UpdatePlace::begin_update(int64_t first, int64_t batches) {
  check_is_next(first, first - first % (turns_.leaves * turns_.micros), turns_);
  const int64_t left = (batches - first) / turns_.leaves;  // of each virtual rank
  first_ = first;
  micros_ = std::min(turns_.micros, left);
  done_ = 0;
}

void UpdatePlace::begin_batch(int64_t number) {
  ARGOSY_CHECK(done_ < size(), kWhere, "an update can be iterated once");
  check_is_next(number, first_ + done_, turns_);
  now_ = {.leaf = done_ / micros_,
          .leaves = turns_.leaves,
          .micro = done_ % micros_,
          .micros = micros_,
          .epoch = epoch_,
          .update = first_ / turns_.leaves,
          .strict = strict_};
  ++done_;
  open_ = true;
  seed_generators_for({turns_.first + now_.leaf, now_.micro});
  begin_micro_batch(now_);
}

void UpdatePlace::end_update() {
  end_micro_batches();
  open_ = false;
  seed_generators_for({-1});  // whoever computed the last pass: for draws around the step
}

/// Of this update, and of `parts`.
void UpdatePlace::seed_generators_for(std::initializer_list<int64_t> parts) const {
  uint64_t key = data::mix(data::mix(seed_, static_cast<uint64_t>(epoch_)),
                           static_cast<uint64_t>(first_ / turns_.leaves));
  for (const int64_t part : parts) {
    key = data::mix(key, static_cast<uint64_t>(part));
  }
  engine::seed_generators(key);
}

void UpdatePlace::check_done() const {
  ARGOSY_CHECK(done_ < size() || !open_,
               kWhere,
               "the loop over an update was left in its last batch: the update has not ended. Let "
               "the loop end by itself");
  ARGOSY_CHECK(done_ == size(),
               kWhere,
               "the loop over an update was left after {} of its {} batches: the virtual ranks "
               "that follow are missing from the gradients. Go through all of them",
               done_,
               size());
}

}  // namespace argosy::fleet::detail
