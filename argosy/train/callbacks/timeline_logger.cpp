#include "argosy/train/callbacks/timeline_logger.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/train/model.h"

namespace argosy::train {
namespace {

std::string_view lane_of(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kDataWait:
      return "input";
    case PhaseKind::kForward:
    case PhaseKind::kBackward:
    case PhaseKind::kUpdate:
      return "compute";
    case PhaseKind::kReduce:
    case PhaseKind::kReduceWait:
    case PhaseKind::kAgree:
      return "communication";
    case PhaseKind::kEvaluation:
    case PhaseKind::kCheckpoint:
      break;
  }
  return "between";
}

bool is_of_a_step(PhaseKind kind) {
  return kind != PhaseKind::kEvaluation && kind != PhaseKind::kCheckpoint;
}

void move_away(const std::string& folder, const std::string& file) {
  std::error_code none;  // a first training has nothing to move
  std::filesystem::rename(folder + "/" + file, folder + "/earlier." + file, none);
}

}  // namespace

TimelineLogger::TimelineLogger(TimelineLoggerOptions options) : options_(std::move(options)) {
  ARGOSY_CHECK(options_.events_until_thinned > 0 && options_.most_events > 0,
               "train.TimelineLogger",
               "events_until_thinned and most_events must be positive, got {} and {}",
               options_.events_until_thinned,
               options_.most_events);
}

void TimelineLogger::on_train_begin(const Training& training) {
  const std::string folder = options_.folder.empty() ? training.run_dir : options_.folder;
  ARGOSY_CHECK(!folder.empty(),
               "train.TimelineLogger",
               "no folder, and fit() has no run_dir either: give it one of them");
  const int rank = training.model.group().rank();
  const std::string file = fmt::format("timeline.rank{}.json", rank);
  move_away(folder, file);
  timeline_ = std::make_shared<events::Timeline>(
      folder + "/" + file,
      events::TimelineOptions{.rank = rank, .most_events = options_.most_events});
  stride_ = 1;
  until_thinner_ = options_.events_until_thinned;
}

void TimelineLogger::on_phase(const Phase& phase) {
  if (timeline_ == nullptr) {
    return;
  }
  if (is_of_a_step(phase.kind)) {
    if (phase.step % stride_ != 0) {
      return;
    }
    if (--until_thinner_ == 0) {
      stride_ *= 2;
      until_thinner_ = options_.events_until_thinned;
    }
  }
  timeline_->add(lane_of(phase.kind), to_string(phase.kind), phase.begin, phase.end);
}

void TimelineLogger::on_train_end(const Training& /*training*/) {
  timeline_.reset();  // ends the file
}

void TimelineLogger::on_exception(const Training& /*training*/, const std::string& /*what*/) {
  timeline_.reset();
}

}  // namespace argosy::train
