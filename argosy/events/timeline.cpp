#include "argosy/events/timeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/wall_clock.h"
#include "argosy/events/append_file.h"

#include <nlohmann/json.hpp>

namespace argosy::events {
namespace {

/// A JSON string with its quotes; bytes that are no UTF-8 are replaced.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const std::string& without_its_past(const std::string& path) {
  ::unlink(path.c_str());
  return path;
}

}  // namespace

struct Timeline::Impl {
  Impl(const std::string& path, TimelineOptions timeline_options)
      : options(std::move(timeline_options)), file(without_its_past(path), "events.timeline") {}

  void meta(std::string_view what, int lane, std::string_view key, const std::string& value) {
    put(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{"{}":{}}}}})",
                    options.rank,
                    lane,
                    what,
                    key,
                    value));
  }
  /// Each event brings the comma before it, so that the file always ends with a whole one.
  void put(std::string_view event) {
    buffer += first ? "[\n" : ",\n";
    buffer += event;
    first = false;
  }
  int lane_number(std::string_view name) {
    const auto known = lanes.find(name);
    if (known != lanes.end()) {
      return known->second;
    }
    const int number = static_cast<int>(lanes.size()) + 1;
    lanes.emplace(std::string(name), number);
    meta("thread_name", number, "name", json_string(name));
    meta("thread_sort_index", number, "sort_index", std::to_string(number));
    return number;
  }
  void write() {
    if (!buffer.empty() && !file.append(buffer)) {
      first = file_is_empty;
    } else {
      file_is_empty = file_is_empty && buffer.empty();
    }
    buffer.clear();
    written_at = std::chrono::steady_clock::now();
  }

  std::mutex mutex{};
  TimelineOptions options;
  ForgivingFile file;
  WallClock clock{};
  std::map<std::string, int, std::less<>> lanes{};
  std::string buffer{};
  Moment written_at = std::chrono::steady_clock::now();
  int64_t events = 0;
  bool first = true;
  bool file_is_empty = true;
  bool closed = false;
};

Timeline::Timeline(const std::string& path, TimelineOptions options) {
  ARGOSY_CHECK(options.most_events > 0 && options.buffer_bytes > 0,
               "events.timeline",
               "expected most_events and buffer_bytes above 0, got {} and {}",
               options.most_events,
               options.buffer_bytes);
  impl_ = std::make_unique<Impl>(path, std::move(options));
  const int rank = impl_->options.rank;
  const std::string& name = impl_->options.process_name;
  impl_->meta(
      "process_name", 0, "name", json_string(name.empty() ? fmt::format("rank {}", rank) : name));
  impl_->meta("process_sort_index", 0, "sort_index", std::to_string(rank));
  impl_->write();
}

Timeline::~Timeline() {
  close();
}

void Timeline::add(std::string_view lane, std::string_view name, Moment begin, Moment end) {
  using Microseconds = std::chrono::duration<double, std::micro>;
  const std::lock_guard lock(impl_->mutex);
  if (impl_->closed || impl_->events >= impl_->options.most_events) {
    return;
  }
  // Lanes are kept in memory and shown one below the other: names made anew for each event would
  // fill both.
  constexpr size_t kMostLanes = 256;
  const bool room = impl_->lanes.size() < kMostLanes || impl_->lanes.contains(lane);
  const int number = impl_->lane_number(room ? lane : "others");
  // To the nanosecond within the microsecond that the clock is set to: neighbours do not overlap.
  impl_->put(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{},"dur":{:.3f}}})",
                         impl_->options.rank,
                         number,
                         json_string(name),
                         impl_->clock.us(begin),
                         std::max(0.0, Microseconds(end - begin).count())));
  if (++impl_->events == impl_->options.most_events) {
    log::warn("[{}] {}: {} events are its limit; later ones are left out (most_events)",
              "events.timeline",
              impl_->file.path(),
              impl_->events);
  }
  if (impl_->buffer.size() >= impl_->options.buffer_bytes ||
      end - impl_->written_at >= impl_->options.flush_interval) {
    impl_->write();
  }
}

void Timeline::flush() {
  const std::lock_guard lock(impl_->mutex);
  impl_->write();
}

void Timeline::close() {
  const std::lock_guard lock(impl_->mutex);
  if (!std::exchange(impl_->closed, true)) {
    impl_->buffer += impl_->first ? "[]\n" : "\n]\n";
    impl_->write();
    impl_->file.close();
  }
}

Timeline::Span::Span(Timeline& timeline, std::string_view lane, std::string_view name)
    : timeline_(timeline), lane_(lane), name_(name), begin_(std::chrono::steady_clock::now()) {}

Timeline::Span::~Span() {
  timeline_.add(lane_, name_, begin_, std::chrono::steady_clock::now());
}

}  // namespace argosy::events
