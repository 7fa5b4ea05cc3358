#include "argosy/train/dealt_feed.h"

#include <limits>
#include <optional>

#include "argosy/base/check.h"
#include "argosy/fleet/fleet.h"

namespace argosy::train::detail {

DealtFeed::DealtFeed(Feed& feed, const FitOptions& options, const comm::Group& group)
    : whole_(&feed), options_(options), group_(group), batch_size_(options.batch_size) {}

std::vector<Leg> DealtFeed::new_legs() const {
  return whole_->dealing().has_value()
             ? std::vector<Leg>{{.ranks = fleet::virtual_ranks(), .batch_size = batch_size_}}
             : std::vector<Leg>();
}

data::BatchTurns DealtFeed::turns() const {
  data::BatchTurns turns = now().turns();
  ARGOSY_CHECK(turns.leaves == 1 || turns.micros == options_.accumulate_grad_batches,
               "train.fit",
               "the loader's sampler has {} micro_batches, and accumulate_grad_batches is {}: an "
               "update takes as many batches of each virtual rank. Give both the same number.",
               turns.micros,
               options_.accumulate_grad_batches);
  turns.micros = options_.accumulate_grad_batches;
  return turns;
}

int64_t DealtFeed::batches_of_process() const {
  const std::optional<int64_t> each = now().batches();
  return each.has_value() ? *each * now().turns().leaves : std::numeric_limits<int64_t>::max();
}

bool DealtFeed::resume(const Place& place, const checkpoint::Snapshot& snapshot) {
  const data::BatchTurns turns = whole_->turns();
  ARGOSY_CHECK(turns.virtual_ranks == 0 || turns.virtual_ranks == fleet::virtual_ranks(),
               "train.fit",
               "the checkpoint's training has {} virtual ranks, and the loader's batches are dealt "
               "to {}. Call fleet::init({{.virtual_ranks = {}}}) before you make the loader, or "
               "give fit() the data set.",
               place.virtual_ranks,
               turns.virtual_ranks,
               place.virtual_ranks);
  batch_size_ = batch_size_after(place);
  const bool same_leg = is_dealt_as(place);
  if (!place.in_epoch()) {
    resume_between_epochs();
    if (other_batches_ == nullptr && same_leg) {
      whole_->load_state(loader_state_in(snapshot));
    }
    return same_leg;
  }
  if (place.at_end) {
    resume_between_epochs();
    return true;
  }
  ARGOSY_CHECK(
      same_leg || whole_->dealing().has_value(),
      "train.fit",
      "the checkpoint is of the middle of an epoch of {} virtual ranks, here are {}, and a "
      "loader with a sampler of its own cannot be dealt anew. Give fit() the data set, or "
      "resume with .virtual_ranks = {}.",
      place.virtual_ranks,
      fleet::virtual_ranks(),
      place.virtual_ranks);
  Place before = place;
  if (same_leg && !before.legs.empty()) {
    before.legs.pop_back();
  }
  earlier_legs_ = before.legs.size();
  if (!same_leg || !before.legs.empty() || batch_size_ != options_.batch_size) {
    deal(before);
  }
  if (same_leg) {
    now().load_state(loader_state_in(snapshot));
  }
  return same_leg;
}

/// True if these virtual ranks and batches are those of the place's last leg.
bool DealtFeed::is_dealt_as(const Place& place) const {
  const int64_t ranks = fleet::virtual_ranks();
  return place.legs.empty()
             ? place.virtual_ranks == ranks
             : place.legs.back().ranks == ranks && place.legs.back().batch_size == batch_size_;
}

int64_t DealtFeed::batch_size_after(const Place& place) const {
  if (options_.checkpoint.resume_batch == ResumeBatch::kPerRank || place.legs.empty()) {
    return options_.batch_size;
  }
  const Leg& last = place.legs.back();
  const int64_t together = last.batch_size * last.ranks;
  const int64_t ranks = fleet::virtual_ranks();
  ARGOSY_CHECK(
      together % ranks == 0,
      "train.fit",
      "checkpoint.resume_batch = kGlobal: a batch of {} samples ({} of each of {} ranks) cannot be "
      "divided evenly between {} ranks. Take another number of ranks, or kPerRank.",
      together,
      last.batch_size,
      last.ranks,
      ranks);
  return together / ranks;
}

/// Deals in batches of another size if updates are to have as many samples as before.
void DealtFeed::resume_between_epochs() {
  if (batch_size_ != options_.batch_size && whole_->dealing().has_value()) {
    deal({});
  }
}

void DealtFeed::deal(const Place& place) {
  const Dealing order = *whole_->dealing();
  const int64_t micros = options_.accumulate_grad_batches;
  if (batch_size_ != options_.batch_size) {
    other_batches_ =
        whole_->with_batches(fleet::distributed_batch_sampler(order.samples,
                                                              {.batch_size = batch_size_,
                                                               .shuffle = order.shuffle,
                                                               .drop_last = order.drop_last,
                                                               .seed = order.seed,
                                                               .micro_batches = micros}));
    whole_ = other_batches_.get();
  }
  if (!place.legs.empty()) {
    const std::vector<int64_t> left = remaining_samples(order, place.epoch, place.legs);
    const int64_t ranks = fleet::virtual_ranks();
    const auto plan_of = [&](int64_t rank) {
      return train::deal(
          left,
          {.batch_size = batch_size_, .ranks = ranks, .rank = rank, .drop_last = order.drop_last});
    };
    const auto turns = data::BatchTurns::of(ranks, group_.size(), group_.rank(), micros);
    std::vector<data::BatchPlan> plans;
    for (int64_t leaf = 0; leaf < turns.leaves; ++leaf) {
      plans.push_back(plan_of(turns.first + leaf));
    }
    data::BatchPlan plan = data::in_turns(plans, micros);
    rest_ = whole_->with_batches(data::BatchSampler(
        plan.size(),
        [plan](int64_t /*epoch*/) { return plan; },
        turns,
        [first = plan_of(0)](int64_t /*epoch*/) { return first; }));
  }
}

}  // namespace argosy::train::detail
