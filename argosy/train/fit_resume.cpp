#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/engine/seed.h"
#include "argosy/fleet/fleet.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/epoch_sums.h"
#include "argosy/train/fit_loop.h"
#include "argosy/train/model.h"

namespace argosy::train::detail {

void FitLoop::add_checkpoints() {
  const std::string folder =
      options_.save_dir.empty() && options_.run_dir.empty() ? "" : checkpoint_folder(options_);
  bool kept = folder.empty();
  for (const AnyCallback& callback : callbacks_) {
    if (const auto* own = dynamic_cast<const ModelCheckpoint*>(&*callback)) {
      const std::string& dir = own->options().dir;
      kept = kept || dir == folder || (dir.empty() && options_.save_dir.empty());
    }
  }
  if (!kept) {
    callbacks_.emplace_back(ModelCheckpoint({.dir = folder,
                                             .every_epochs = options_.save_freq,
                                             .every_steps = options_.save_steps,
                                             .keep_last = options_.keep_last}));
  }
}

bool FitLoop::keeps_checkpoints() const {
  return std::any_of(callbacks_.begin(), callbacks_.end(), [](const AnyCallback& callback) {
    return dynamic_cast<const ModelCheckpoint*>(&*callback) != nullptr;
  });
}

Place FitLoop::place_now(bool epoch_end) const {
  Place place{.epoch = epoch_,
              .ranks = core_.group.size(),
              .begun_step = begun_step_,
              .loss = loss_,
              .samples = samples_,
              .stop_after_epoch = stop_after_epoch_,
              .stopped = (history_.ended == Ended::kStopped && ended_) ||
                         (epoch_end && stop_after_epoch_),  // a signal came first, perhaps
              .reason = stop_reason_,
              .begun_from = begun_from_};
  if (epoch_end) {
    ++place.epoch;
    if (train_->dealing().has_value()) {  // says how the next epoch is dealt
      place.legs = {{.ranks = core_.group.size(), .batch_size = batch_size_}};
    }
    return place;
  }
  place.batch = batch_;
  place.at_end = epoch_done_ || (batches_.has_value() && batch_ == *batches_);
  place.legs = legs_;
  if (!place.legs.empty()) {
    place.legs.back().done = batch_;
  }
  return place;
}

void FitLoop::offer_save_point(bool epoch_end, const Logs& logs) {
  std::optional<checkpoint::Snapshot> made;
  const std::function<const checkpoint::Snapshot&()> snapshot = [&]() -> const auto& {
    if (!made.has_value()) {
      if (epoch_end) {
        train_->set_epoch(epoch_ + 1);
      }
      made = capture(core_,
                     place_now(epoch_end),
                     {.callbacks = callbacks_,
                      .epoch_loss = epoch_loss_,
                      .feed = epoch_end ? *train_ : feed()});
    }
    return *made;
  };
  const auto begun = Clock::now();
  all(&Callback::on_save_point,
      SavePoint{.model = model_,
                .epoch = epoch_,
                .step = core_.steps,
                .epoch_end = epoch_end,
                .evaluates = eval_ != nullptr,
                .requested = std::exchange(checkpoint_requested_, false),
                .last = ended_ || (epoch_end && epoch_ + 1 == options_.epochs),
                .logs = logs,
                .snapshot = snapshot});
  if (made.has_value()) {
    phases_.tell({PhaseKind::kCheckpoint, begun, Clock::now(), core_.steps});
  }
}

void FitLoop::resume() {
  const std::optional<std::string> path = checkpoint_to_resume(options_, core_.group);
  if (!path.has_value()) {
    return;
  }
  const Share share = read_together(*path, core_.group);
  restore(core_, share.snapshot, *path);
  check_schedule(core_, share.snapshot, *path);
  go_on(share, *path);
  restore_callbacks(share.snapshot, callbacks_);
  resumed_ = true;
  if (options_.verbose > 0 && core_.group.rank() == 0) {
    if (done()) {
      fmt::print("Resuming from {}: nothing is left to do after step {}\n", *path, core_.steps);
    } else {
      fmt::print("Resuming from {}: epoch {}, batch {}, step {}\n",
                 *path,
                 epoch_ + 1,
                 batch_,
                 core_.steps);
    }
    std::fflush(stdout);
  }
}

void FitLoop::go_on(const Share& share, const std::string& path) {
  const checkpoint::Snapshot& snapshot = share.snapshot;
  const std::optional<Place> place = place_in(snapshot);
  if (!place.has_value()) {
    throw CheckpointError("train.resume",
                          "Model::save() wrote it: it has weights and the optimizer's state, and "
                          "no place in a training to go on from. Model::load() takes it",
                          {.path = path});
  }
  epoch_ = place->epoch;
  loss_ = place->loss;
  samples_ = place->samples;
  stop_after_epoch_ = place->stop_after_epoch;
  stop_reason_ = place->reason;
  begun_from_ = options_.resume_from.empty() ? place->begun_from : options_.resume_from;
  core_.requests = requests_in(snapshot, share.gone);
  if (place->stopped) {
    stop();
  }
  begun_step_ = place->begun_step;
  ended_ = ended_ ||
           (options_.num_iters.has_value() && core_.steps - begun_step_ >= *options_.num_iters);
  batch_size_ = batch_size_after(*place);
  if (place->in_epoch()) {
    go_on_in_epoch(*place, snapshot);
    go_on_summing(*place, share);
  } else {
    deal_next_epochs();
    if (other_batches_ == nullptr && is_dealt_as(*place)) {
      train_->load_state(loader_state_in(snapshot));
    }
  }
  restore_rank(core_, snapshot);
  if (core_.group.rank() >= place->ranks) {  // ranks that were not there draw numbers of their own
    seed_everything(options_.seed + static_cast<uint64_t>(core_.steps), core_.group.rank());
  }
}

/// Ranks go on with the sums of those that are gone beside their own; ranks that were not there
/// have counted nothing yet.
void FitLoop::go_on_summing(const Place& place, const Share& share) {
  epoch_loss_ = {};
  core_.reset_metrics();
  if (core_.group.rank() < place.ranks) {
    restore_sums(core_, epoch_loss_, share.snapshot.rank_values, share.gone);
  }
  reset_others(core_, core_.group.size() < place.ranks);
}

/// Whether these ranks and batches are those of the place's last leg.
bool FitLoop::is_dealt_as(const Place& place) const {
  const int64_t ranks = core_.group.size();
  return place.legs.empty()
             ? place.ranks == ranks
             : place.legs.back().ranks == ranks && place.legs.back().batch_size == batch_size_;
}

int64_t FitLoop::batch_size_after(const Place& place) const {
  if (options_.resume_batch == ResumeBatch::kPerRank || place.legs.empty()) {
    return options_.batch_size;
  }
  const Leg& last = place.legs.back();
  const int64_t together = last.batch_size * last.ranks;
  ARGOSY_CHECK(together % core_.group.size() == 0,
               "train.fit",
               "resume_batch = kGlobal: a batch of {} samples ({} of each of {} ranks) cannot be "
               "divided evenly between {} ranks. Take another number of ranks, or kPerRank.",
               together,
               last.batch_size,
               last.ranks,
               core_.group.size());
  return together / core_.group.size();
}

/// In batches of another size, if updates are to have as many samples as before.
void FitLoop::deal_next_epochs() {
  if (batch_size_ != options_.batch_size && train_->dealing().has_value()) {
    deal_to_these_ranks({});
  }
}

void FitLoop::deal_to_these_ranks(const Place& place) {
  const Dealing order = *train_->dealing();
  const int64_t ranks = core_.group.size();
  const int64_t rank = core_.group.rank();
  if (batch_size_ != options_.batch_size) {
    other_batches_ =
        train_->with_batches(fleet::distributed_batch_sampler(order.samples,
                                                              {.batch_size = batch_size_,
                                                               .shuffle = order.shuffle,
                                                               .drop_last = order.drop_last,
                                                               .seed = order.seed}));
    train_ = other_batches_.get();
  }
  if (!place.legs.empty()) {
    data::BatchPlan plan = deal(remaining_samples(order, place.epoch, place.legs),
                                batch_size_,
                                ranks,
                                rank,
                                order.drop_last);
    rest_ = train_->with_batches(
        data::BatchSampler(plan.size(), [plan](int64_t /*epoch*/) { return plan; }));
  }
}

void FitLoop::go_on_in_epoch(const Place& place, const checkpoint::Snapshot& snapshot) {
  const int64_t ranks = core_.group.size();
  in_epoch_ = true;
  epoch_done_ = place.at_end;
  legs_ = place.legs;
  batch_ = update_begun_ = place.batch;
  if (epoch_done_) {
    deal_next_epochs();
    return;
  }
  const bool same_leg = is_dealt_as(place);
  ARGOSY_CHECK(same_leg || train_->dealing().has_value(),
               "train.fit",
               "the checkpoint is of the middle of an epoch on {} ranks, here are {}, and a loader "
               "with a sampler of its own cannot be dealt anew. Give fit() the data set, or resume "
               "with {} ranks.",
               place.ranks,
               ranks,
               place.ranks);
  Place before = place;
  if (same_leg && !before.legs.empty()) {
    before.legs.pop_back();
  }
  if (!same_leg || !before.legs.empty() || batch_size_ != options_.batch_size) {
    deal_to_these_ranks(before);
  }
  if (same_leg) {
    feed().load_state(loader_state_in(snapshot));
    return;
  }
  legs_.push_back({.ranks = ranks, .batch_size = batch_size_});
  batch_ = update_begun_ = 0;
}

}  // namespace argosy::train::detail
