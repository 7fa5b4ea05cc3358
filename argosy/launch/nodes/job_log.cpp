#include "argosy/launch/nodes/job_log.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "argosy/base/error.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RemoteEnd,
                                   rank,
                                   pid,
                                   code,
                                   signal,
                                   at_us,
                                   ran_ms,
                                   hung,
                                   stopped,
                                   threw,
                                   out_of_memory,
                                   asked_to_stop,
                                   last_lines,
                                   error,
                                   error_path,
                                   log_path,
                                   program)
NLOHMANN_JSON_SERIALIZE_ENUM(JobEvent::Kind,
                             {{JobEvent::Kind::kFailed, "failed"},
                              {JobEvent::Kind::kInterrupted, "interrupted"},
                              {JobEvent::Kind::kEnded, "ended"},
                              {JobEvent::Kind::kLost, "lost"},
                              {JobEvent::Kind::kDecided, "decided"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(
    JobEvent, kind, node, restart, signal, ends, left_behind, wait_ms, text, at_us)

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

void JobState::lose(int node, int64_t at_us) {
  gone_.insert(node);
  // One that has said all it had to say may go.
  const bool needed = !ended_[static_cast<size_t>(node)] || (node == 0 && !over());
  if (needed && std::ranges::count(lost_, node) == 0) {
    lost_.push_back(node);
    lost_since_us_ = std::min(lost_since_us_.value_or(at_us), at_us);
  }
}

void JobState::add(const JobEvent& event) {
  const auto node = static_cast<size_t>(event.node);
  if (node >= ended_.size()) {
    return;
  }
  if (event.kind == JobEvent::Kind::kLost) {
    lose(event.node, event.at_us);
    return;
  }
  if (event.kind == JobEvent::Kind::kInterrupted) {
    interrupted_by_ = interrupted_by_.value_or(event.signal);
    return;
  }
  if (event.restart != restart_) {
    if (event.restart > restart_) {
      later_.push_back(event);
    }
    return;
  }
  if (event.kind == JobEvent::Kind::kDecided) {
    decision_ = decision_.value_or(event);
  } else if (event.kind == JobEvent::Kind::kFailed) {
    // What fails once the job was told to stop fails for that reason.
    failed_ = failed_ || !interrupted_by_;
    if (!interrupted_by_) {
      failures_.push_back(event);
    }
  } else if (!ended_[node]) {
    ended_[node] = true;
    ends_.insert(ends_.end(), event.ends.begin(), event.ends.end());
    left_behind_ = left_behind_ || event.left_behind;
    std::erase_if(failures_, [&](const JobEvent& told) { return told.node == event.node; });
  }
}

void JobState::begin(int restart) {
  restart_ = restart;
  ended_.assign(ended_.size(), false);
  ends_.clear();
  failures_.clear();
  failed_ = false;
  left_behind_ = false;
  decision_.reset();
  lost_.assign(gone_.begin(), gone_.end());
  for (const JobEvent& event : std::exchange(later_, {})) {
    add(event);
  }
}

std::vector<int> JobState::awaited() const {
  std::vector<int> nodes;
  for (size_t node = 0; node < ended_.size(); ++node) {
    if (!ended_[node] && std::ranges::count(lost_, static_cast<int>(node)) == 0) {
      nodes.push_back(static_cast<int>(node));
    }
  }
  return nodes;
}

bool JobState::undecided() const {
  return all_ended() && failed_ && lost_.empty() && !interrupted_by_ && !decision_;
}

bool JobState::over() const {
  const bool nobody_tells = std::ranges::count(lost_, 0) > 0;
  return nobody_tells || (all_ended() && !undecided());
}

bool died_by_signal(const RemoteEnd& end) {
  return end.signal != 0 && end.signal != SIGABRT;
}

std::optional<RemoteEnd> JobState::first_failure() const {
  std::vector<RemoteEnd> failed;
  if (!failed_) {
    return std::nullopt;
  }
  std::ranges::copy_if(ends_, std::back_inserter(failed), [](const RemoteEnd& end) {
    return (end.code != 0 || end.signal != 0) && !end.asked_to_stop;
  });
  for (const JobEvent& told : failures_) {
    failed.insert(failed.end(), told.ends.begin(), told.ends.end());
  }
  if (failed.empty()) {
    return std::nullopt;
  }
  std::ranges::stable_sort(failed, {}, &RemoteEnd::at_us);
  // Exit codes and aborts are how programs react to the loss of a peer, which may be seen a moment
  // before the peer's own end is.
  constexpr int64_t kMoment = 1000;
  const auto died = std::ranges::find_if(failed, [&](const RemoteEnd& end) {
    return died_by_signal(end) && end.at_us <= failed.front().at_us + kMoment;
  });
  return died == failed.end() ? failed.front() : *died;
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
