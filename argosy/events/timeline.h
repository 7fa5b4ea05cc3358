#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace argosy::events {

/// Whose timeline it is and how large it may grow.
struct TimelineOptions {
  int rank = 0;                ///< the "process" that a viewer shows it under
  std::string process_name{};  ///< empty: "rank N"
  /// What comes after these is left out, with a line in the log: some 100 MB.
  int64_t most_events = 1'000'000;
  /// Gathered before it is written; the memory that the timeline takes, and what a kill may cost.
  size_t buffer_bytes = size_t{64} << 10;
  /// What is older is written with the next event, so that a page shows it.
  std::chrono::milliseconds flush_interval{1000};
};

/// Writes what happened when, as a trace that chrome://tracing, Perfetto and the run page show: one
/// process for each rank, one row for each lane.
///
///     Timeline timeline("runs/a/timeline.json", {.rank = rank});
///     { const auto span = timeline.span("compute", "forward"); … }
///     timeline.add("input", "wait", begin, end);
///
/// The file is an array of complete events, without its last bracket until close(): viewers read
/// such a file, so that one of a killed program is good up to its last events. Its times are
/// microseconds since 1970 by the monotonic clock: ranks of one host lie exactly beside each other,
/// those of several as well as their clocks agree. One writer to a file: each rank has its own.
///
/// Thread-safe. Errors: DataError "events.timeline" where the file cannot be made; later a full
/// disk is told once in the log, and events are left out. Cost: 0.5 µs an event.
/// Source: "Trace Event Format", Google, 2016: phases X and M, JSON array format.
class Timeline final {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  /// A span of time from its making to its end, for a scope.
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

  /// A file that is there already is written anew: an array cannot be continued after its end.
  explicit Timeline(const std::string& path, TimelineOptions options = {});
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void add(std::string_view lane, std::string_view name, Moment begin, Moment end);
  /// The same until this object's end of life; the timeline must live longer.
  [[nodiscard]] Span span(std::string_view lane, std::string_view name) {
    return {*this, lane, name};
  }
  /// Writes what was gathered.
  void flush();
  /// Ends the array. Idempotent; the destructor does it.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::events
