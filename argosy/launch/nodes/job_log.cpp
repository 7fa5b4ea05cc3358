#include "argosy/launch/nodes/job_log.h"

#include <algorithm>

#include "argosy/base/error.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    RemoteEnd, rank, pid, code, signal, at_us, ran_ms, asked_to_stop, last_lines, log_path)
NLOHMANN_JSON_SERIALIZE_ENUM(JobEvent::Kind,
                             {{JobEvent::Kind::kFailed, "failed"},
                              {JobEvent::Kind::kInterrupted, "interrupted"},
                              {JobEvent::Kind::kEnded, "ended"},
                              {JobEvent::Kind::kLost, "lost"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JobEvent, kind, node, restart, signal, ends)

std::string JobEvent::to_json() const {
  // What a rank printed need not be UTF-8.
  return nlohmann::json(*this).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JobEvent JobEvent::from_json(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<JobEvent>();
  } catch (const nlohmann::json::exception& error) {
    throw RendezvousError("launch.nodes",
                          std::string("the job's journal cannot be read: ") + error.what());
  }
}

void JobState::add(const JobEvent& event) {
  const auto node = static_cast<size_t>(event.node);
  const bool of_this_start = event.restart == restart_ || event.kind == JobEvent::Kind::kLost;
  if (!of_this_start || node >= ended_.size()) {
    return;
  }
  switch (event.kind) {
    case JobEvent::Kind::kFailed:
      failed_seen_ = true;
      break;
    case JobEvent::Kind::kInterrupted:
      interrupted_by_ = interrupted_by_.value_or(event.signal);
      break;
    case JobEvent::Kind::kEnded:
      if (!ended_[node]) {
        ended_[node] = true;
        ends_.insert(ends_.end(), event.ends.begin(), event.ends.end());
      }
      break;
    case JobEvent::Kind::kLost:
      // One that has said all it had to say may go.
      if (!ended_[node] && std::ranges::count(lost_, event.node) == 0) {
        lost_.push_back(event.node);
      }
      break;
  }
}

bool JobState::over() const {
  for (size_t node = 0; node < ended_.size(); ++node) {
    if (!ended_[node] && std::ranges::count(lost_, static_cast<int>(node)) == 0) {
      return false;
    }
  }
  return true;
}

std::optional<RemoteEnd> JobState::first_failure() const {
  std::optional<RemoteEnd> first;
  const auto died = [](const RemoteEnd& end) { return end.signal != 0 && end.signal != 6; };
  for (const RemoteEnd& end : ends_) {
    if ((end.code == 0 && end.signal == 0) || end.asked_to_stop) {
      continue;
    }
    if (!first || end.at_us < first->at_us) {
      first = end;
    }
  }
  if (!first) {
    return first;
  }
  // Exit codes and aborts are how programs react to the loss of a peer, which may be seen a moment
  // before the peer's own end is.
  constexpr int64_t kMoment = 1000;
  for (const RemoteEnd& end : ends_) {
    if (!end.asked_to_stop && died(end) && !died(*first) && end.at_us <= first->at_us + kMoment) {
      first = end;
    }
  }
  return first;
}

std::vector<RemoteEnd> JobState::others() const {
  const std::optional<RemoteEnd> first = first_failure();
  std::vector<RemoteEnd> rest;
  std::ranges::copy_if(ends_, std::back_inserter(rest), [&](const RemoteEnd& end) {
    return !first || end.rank != first->rank;
  });
  std::ranges::stable_sort(rest, {}, &RemoteEnd::at_us);
  return rest;
}

}  // namespace argosy::launch
