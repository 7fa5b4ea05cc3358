#include "argosy/train/dealt_feed.h"

#include "argosy/base/check.h"
#include "argosy/fleet/fleet.h"

namespace argosy::train::detail {

DealtFeed::DealtFeed(Feed& feed, const FitOptions& options, const comm::Group& group)
    : whole_(&feed), options_(options), group_(group), batch_size_(options.batch_size) {}

std::vector<Leg> DealtFeed::new_legs() const {
  return whole_->dealing().has_value()
             ? std::vector<Leg>{{.ranks = group_.size(), .batch_size = batch_size_}}
             : std::vector<Leg>();
}

bool DealtFeed::resume(const Place& place, const checkpoint::Snapshot& snapshot) {
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
  ARGOSY_CHECK(same_leg || whole_->dealing().has_value(),
               "train.fit",
               "the checkpoint is of the middle of an epoch on {} ranks, here are {}, and a loader "
               "with a sampler of its own cannot be dealt anew. Give fit() the data set, or resume "
               "with {} ranks.",
               place.ranks,
               group_.size(),
               place.ranks);
  Place before = place;
  if (same_leg && !before.legs.empty()) {
    before.legs.pop_back();
  }
  if (!same_leg || !before.legs.empty() || batch_size_ != options_.batch_size) {
    deal(before);
  }
  if (same_leg) {
    now().load_state(loader_state_in(snapshot));
  }
  return same_leg;
}

/// True if these ranks and batches are those of the place's last leg.
bool DealtFeed::is_dealt_as(const Place& place) const {
  return place.legs.empty() ? place.ranks == group_.size()
                            : place.legs.back().ranks == group_.size() &&
                                  place.legs.back().batch_size == batch_size_;
}

int64_t DealtFeed::batch_size_after(const Place& place) const {
  if (options_.checkpoint.resume_batch == ResumeBatch::kPerRank || place.legs.empty()) {
    return options_.batch_size;
  }
  const Leg& last = place.legs.back();
  const int64_t together = last.batch_size * last.ranks;
  ARGOSY_CHECK(
      together % group_.size() == 0,
      "train.fit",
      "checkpoint.resume_batch = kGlobal: a batch of {} samples ({} of each of {} ranks) cannot be "
      "divided evenly between {} ranks. Take another number of ranks, or kPerRank.",
      together,
      last.batch_size,
      last.ranks,
      group_.size());
  return together / group_.size();
}

/// Deals in batches of another size if updates are to have as many samples as before.
void DealtFeed::resume_between_epochs() {
  if (batch_size_ != options_.batch_size && whole_->dealing().has_value()) {
    deal({});
  }
}

void DealtFeed::deal(const Place& place) {
  const Dealing order = *whole_->dealing();
  if (batch_size_ != options_.batch_size) {
    other_batches_ =
        whole_->with_batches(fleet::distributed_batch_sampler(order.samples,
                                                              {.batch_size = batch_size_,
                                                               .shuffle = order.shuffle,
                                                               .drop_last = order.drop_last,
                                                               .seed = order.seed}));
    whole_ = other_batches_.get();
  }
  if (!place.legs.empty()) {
    data::BatchPlan plan = train::deal(remaining_samples(order, place.epoch, place.legs),
                                       {.batch_size = batch_size_,
                                        .ranks = group_.size(),
                                        .rank = group_.rank(),
                                        .drop_last = order.drop_last});
    rest_ = whole_->with_batches(
        data::BatchSampler(plan.size(), [plan](int64_t /*epoch*/) { return plan; }));
  }
}

}  // namespace argosy::train::detail
