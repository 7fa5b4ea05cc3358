#include "argosy/train/epoch_place.h"

#include <utility>

namespace argosy::train::detail {

bool EpochPlace::begin_epoch(std::vector<Leg> legs) {
  if (std::exchange(in_epoch_, false)) {
    return false;
  }
  batch_ = update_begun_ = 0;
  batches_done_ = false;
  legs_ = std::move(legs);
  return true;
}

void EpochPlace::put(Place& place, std::optional<int64_t> batches) const {
  place.epoch = epoch_;
  place.begun_step = begun_step_;
  place.batch = batch_;
  place.at_end = batches_done_ || (batches.has_value() && batch_ == *batches);
  place.legs = legs_;
  if (!place.legs.empty()) {
    place.legs.back().done = batch_;
  }
}

void EpochPlace::put_next_epoch(Place& place, std::vector<Leg> legs) const {
  place.epoch = epoch_ + 1;
  place.begun_step = begun_step_;
  place.legs = std::move(legs);
}

void EpochPlace::load(const Place& place, const std::vector<Leg>& new_legs) {
  epoch_ = place.epoch;
  begun_step_ = place.begun_step;
  if (!place.in_epoch()) {
    return;
  }
  in_epoch_ = true;
  batches_done_ = place.at_end;
  legs_ = place.legs;
  legs_.insert(legs_.end(), new_legs.begin(), new_legs.end());
  batch_ = update_begun_ = new_legs.empty() ? place.batch : 0;
}

}  // namespace argosy::train::detail
