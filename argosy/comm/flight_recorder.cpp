#include "argosy/comm/flight_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/wall_clock.h"
#include "argosy/comm/group_state.h"
#include "argosy/os/whole_file.h"

#include <nlohmann/json.hpp>

namespace argosy::comm {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::string file_name(int rank, const std::string& group) {
  if (group == "world") {
    return fmt::format("flight_rank{}.json", rank);
  }
  std::string word = group;
  std::ranges::replace_if(
      word, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return fmt::format("flight_rank{}_{}.json", rank, word);
}

}  // namespace

FlightRecorder::FlightRecorder(int rank, const std::string& folder, const std::string& group)
    : rank_(rank),
      path_(folder.empty() ? "" : folder + "/" + file_name(rank, group)),
      entries_(kCapacity) {}

FlightRecorder::Entry* FlightRecorder::find(uint64_t id) {
  Entry& entry = entries_[id % kCapacity];
  return entry.state != State::kEmpty && entry.event.id == id ? &entry : nullptr;
}

void FlightRecorder::on_enqueued(const OperationEvent& event) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[event.id % kCapacity];
  entry.event = event;
  entry.state = State::kQueued;
  const size_t length = std::min(event.group.size(), sizeof(entry.group) - 1);
  std::memcpy(entry.group, event.group.data(), length);
  entry.group[length] = '\0';
  entry.event.group = {};
}

void FlightRecorder::on_started(const OperationEvent& event) {
  const std::lock_guard lock(mutex_);
  if (Entry* entry = find(event.id)) {
    entry->event.started = event.started;
    entry->state = State::kRunning;
  }
}

void FlightRecorder::on_ended(const OperationEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    if (Entry* entry = find(event.id)) {
      entry->event.started = event.started;
      entry->event.ended = event.ended;
      entry->state = event.error.empty() ? State::kDone : State::kFailed;
    }
    if (event.error.empty() || !first_error_.empty()) {
      return;
    }
    first_error_ = event.error;
    first_error_id_ = event.id;
  }
  report_failure(event);
}

/// The error itself reaches the caller as an exception; this is what stands beside it.
void FlightRecorder::report_failure(const OperationEvent& event) {
  if (path_.empty()) {
    log::warn(
        "[comm.flight_recorder] rank {}: {} failed; its last operations (ARGOSY_LOG_DIR keeps "
        "{}):\n{}",
        rank_,
        event.op,
        kCapacity,
        to_text(5));
    return;
  }
  dump(path_);
  log::warn("[comm.flight_recorder] rank {}: {} failed; its last operations are in {}",
            rank_,
            event.op,
            path_);
}

std::vector<FlightRecorder::Entry> FlightRecorder::in_order() const {
  std::vector<Entry> entries;
  {
    const std::lock_guard lock(mutex_);
    entries = entries_;
  }
  std::erase_if(entries, [](const Entry& entry) { return entry.state == State::kEmpty; });
  std::ranges::sort(entries, {}, [](const Entry& entry) { return entry.event.id; });
  return entries;
}

std::string FlightRecorder::to_json() const {
  static constexpr const char* kNames[] = {"empty", "queued", "running", "done", "failed"};
  const WallClock wall;  // one for all: no operation ends before it started
  nlohmann::json operations = nlohmann::json::array();
  std::string error;
  uint64_t error_id = 0;
  {
    const std::lock_guard lock(mutex_);
    error = first_error_;
    error_id = first_error_id_;
  }
  for (const Entry& entry : in_order()) {
    const OperationEvent& event = entry.event;
    nlohmann::json row = {{"group", std::string(entry.group)},
                          {"op", std::string(event.op)},
                          {"state", kNames[static_cast<size_t>(entry.state)]},
                          {"elements", event.elements},
                          {"bytes", event.bytes},
                          {"enqueued_us", wall.us(event.enqueued)}};
    if (event.seq >= 0) {
      row["seq"] = event.seq;
    }
    if (!event.dtype.empty()) {
      row["dtype"] = std::string(event.dtype);
    }
    if (event.peer >= 0) {
      row["peer"] = event.peer;
    }
    if (entry.state >= State::kRunning) {
      row["started_us"] = wall.us(event.started);
    }
    if (entry.state >= State::kDone) {
      row["ended_us"] = wall.us(event.ended);
    }
    if (!error.empty() && event.id == error_id) {
      row["error"] = error;
    }
    operations.push_back(std::move(row));
  }
  return nlohmann::json({{"version", 1}, {"rank", rank_}, {"operations", std::move(operations)}})
      .dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string FlightRecorder::to_text(size_t count) const {
  const std::vector<Entry> entries = in_order();
  const auto now = Clock::now();
  std::string text;
  for (size_t i = entries.size() - std::min(count, entries.size()); i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    const OperationEvent& event = entry.event;
    text += event.seq < 0 ? fmt::format("  {} {}", entry.group, event.op)
                          : fmt::format("  {} seq {} {} {} {} B",
                                        entry.group,
                                        event.seq,
                                        event.op,
                                        event.dtype,
                                        event.bytes);
    switch (entry.state) {
      case State::kQueued:
        text += fmt::format(": queued for {:.3f} ms\n", milliseconds(now - event.enqueued));
        break;
      case State::kRunning:
        text += fmt::format(": running for {:.3f} ms\n", milliseconds(now - event.started));
        break;
      default:
        text += fmt::format(": {} after {:.3f} ms\n",
                            entry.state == State::kFailed ? "failed" : "done",
                            milliseconds(event.ended - event.started));
    }
  }
  return text;
}

void FlightRecorder::dump(const std::string& path) const {
  const std::string text = to_json();
  std::error_code ignored;  // writing tells what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const Status written = os::write_whole(path, text, {.disk = os::WholeFileOptions::Disk::kNot});
  if (!written.ok()) {
    throw CommError("comm.flight_recorder",
                    fmt::format("cannot write {}: {}. Check ARGOSY_LOG_DIR.",
                                path,
                                errno_message(written.failure().error_number)));
  }
}

void dump_flight_record(const Group& group, const std::string& path) {
  group.state().family().recorder->dump(path);
}

std::string flight_record_text(const Group& group, size_t count) {
  return group.state().family().recorder->to_text(count);
}

}  // namespace argosy::comm
