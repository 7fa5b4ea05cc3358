#include "argosy/data/epoch_cursor.h"

#include "argosy/base/check.h"

namespace argosy::data {

void EpochCursor::set_epoch(int64_t epoch) {
  ARGOSY_CHECK(epoch >= 0, "data.set_epoch", "epoch must not be negative, got {}", epoch);
  if (epoch != next_.epoch) {
    next_ = {epoch, 0};
  }
  current_.reset();
}

SamplerState EpochCursor::begin() {
  const SamplerState start = next_;
  next_ = {start.epoch + 1, 0};
  current_ = start;
  return start;
}

void EpochCursor::consumed(int64_t epoch, int64_t done, int64_t total) {
  if (done < total) {
    current_ = SamplerState{epoch, done};
  } else {
    current_.reset();
  }
}

void EpochCursor::load(const SamplerState& state) {
  ARGOSY_CHECK(state.epoch >= 0 && state.position >= 0,
               "data.load_state",
               "epoch and position must not be negative, got {} and {}",
               state.epoch,
               state.position);
  next_ = state;
  current_.reset();
}

}  // namespace argosy::data
