#include "argosy/launch/nodes/job_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "argosy/base/error.h"

#include <nlohmann/json.hpp>

namespace argosy::launch {

namespace {

/// All launchers are told so much of what a rank said of its end.
constexpr size_t kLongestText = 4096;

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ErrorNote, message, stack, path)

void to_json(nlohmann::json& json, const RankEnd& end) {
  ErrorNote error = end.error.value_or(ErrorNote{});
  error.message.resize(std::min(error.message.size(), kLongestText));
  error.stack.resize(std::min(error.stack.size(), kLongestText));
  json = {{"rank", end.rank},
          {"node", end.node},
          {"pid", end.pid},
          {"code", end.exit.code},
          {"signal", end.exit.signal},
          {"at_us", end.at_us},
          {"turn", end.turn},
          {"ran_ms", end.ran.count()},
          {"host", end.host},
          {"out_of_memory", end.out_of_memory ? static_cast<int>(*end.out_of_memory) : -1},
          {"hung", end.hung},
          {"stopped", end.stopped},
          {"threw", end.threw.substr(0, kLongestText)},
          {"asked_to_stop", end.asked_to_stop},
          {"last_lines", end.last_lines},
          {"error", error},
          {"program", end.program},
          {"log_path", end.log_path},
          {"last_words", end.last_words.substr(0, kLongestText)}};
}

void from_json(const nlohmann::json& json, RankEnd& end) {
  ErrorNote error;
  int out_of_memory = -1;
  int64_t ran_ms = 0;
  json.at("rank").get_to(end.rank);
  json.at("node").get_to(end.node);
  json.at("pid").get_to(end.pid);
  json.at("code").get_to(end.exit.code);
  json.at("signal").get_to(end.exit.signal);
  json.at("at_us").get_to(end.at_us);
  json.at("turn").get_to(end.turn);
  json.at("ran_ms").get_to(ran_ms);
  json.at("host").get_to(end.host);
  json.at("out_of_memory").get_to(out_of_memory);
  json.at("hung").get_to(end.hung);
  json.at("stopped").get_to(end.stopped);
  json.at("threw").get_to(end.threw);
  json.at("asked_to_stop").get_to(end.asked_to_stop);
  json.at("last_lines").get_to(end.last_lines);
  json.at("error").get_to(error);
  json.at("program").get_to(end.program);
  json.at("log_path").get_to(end.log_path);
  json.at("last_words").get_to(end.last_words);
  end.ran = std::chrono::milliseconds(ran_ms);
  if (out_of_memory >= 0) {
    end.out_of_memory = out_of_memory > 0;
  }
  if (!error.message.empty()) {
    end.error = std::move(error);
  }
}

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

std::optional<RankEnd> JobState::first_failure() const {
  if (!failed_) {
    return std::nullopt;
  }
  std::vector<RankEnd> failed;
  std::ranges::copy_if(ends_, std::back_inserter(failed), failed_by_itself);
  for (const JobEvent& told : failures_) {
    failed.insert(failed.end(), told.ends.begin(), told.ends.end());
  }
  if (failed.empty()) {
    return std::nullopt;
  }
  std::ranges::stable_sort(failed, {}, &RankEnd::at_us);
  return failed[root_cause(failed)];
}

std::vector<RankEnd> JobState::others() const {
  const std::optional<RankEnd> first = first_failure();
  std::vector<RankEnd> rest;
  std::ranges::copy_if(ends_, std::back_inserter(rest), [&](const RankEnd& end) {
    return !first || end.rank != first->rank;
  });
  std::ranges::stable_sort(rest, {}, &RankEnd::at_us);
  return rest;
}

}  // namespace argosy::launch
