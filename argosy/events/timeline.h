#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace argosy::events {

/// Names a timeline and limits its size.
struct TimelineOptions {
  int rank = 0;                ///< the "process" under which a viewer shows it
  std::string process_name{};  ///< empty: "rank N"
  /// Later events are left out, with a line in the log. This many take some 100 MB.
  int64_t most_events = 1'000'000;
  /// Bytes that are gathered before a write. It is the memory that a timeline takes, and what a
  /// kill may cost.
  size_t buffer_bytes = size_t{64} << 10;
  /// Gathered events that are older than this are written with the next event, so that a page shows
  /// them.
  std::chrono::milliseconds flush_interval{1000};
};

/// Writes events with their times as a trace, which chrome://tracing, Perfetto and the run page
/// show. Each rank is a process in it, and each lane a row.
///
///     Timeline timeline("runs/a/timeline.json", {.rank = rank});
///     { const auto span = timeline.span("compute", "forward"); … }
///     timeline.add("input", "wait", begin, end);
///
/// The file is an array of complete events. Its last bracket comes with close(), but viewers read
/// it without, so the file of a killed program is good up to its last events. Times are
/// microseconds since 1970 by the monotonic clock: ranks of one host are exactly aligned, those of
/// several hosts as well as their clocks agree. A file has one writer, and each rank has its own
/// file.
///
/// Thread-safe. Errors: DataError "events.timeline" when the file cannot be made. A disk that fills
/// up later is logged once, and events are left out. Cost: 0.5 µs per event.
/// Source: "Trace Event Format", Google, 2016: phases X and M, JSON array format.
class Timeline final {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// Adds an event that lasts from its constructor to its destructor.
  class Span final {
   public:
    Span(Timeline& timeline, std::string_view lane, std::string_view name);
    ~Span();
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Timeline& timeline_;
    std::string lane_;
    std::string name_;
    Moment begin_;
  };

  /// Replaces a file that exists already, because an array cannot be continued after its end.
  explicit Timeline(const std::string& path, TimelineOptions options = {});
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void add(std::string_view lane, std::string_view name, Moment begin, Moment end);
  /// Adds an event that lasts as long as the returned object. The timeline must live longer.
  [[nodiscard]] Span span(std::string_view lane, std::string_view name) {
    return {*this, lane, name};
  }
  /// Writes the gathered events.
  void flush();
  /// Ends the array. Idempotent. The destructor calls it.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::events
