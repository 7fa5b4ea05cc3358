#pragma once

#include <memory>
#include <string>

namespace argosy::runs {

/// Writes `folder`/index.html, a page that shows a run, from the files that lie there:
///
///     run.json              RunConfig: what was run, where, how it ended
///     metrics.jsonl         figures over the steps (MetricsLog)
///     rank<k>.json          what each rank says of itself: an object, its names become columns
///     timeline*.json        events::Timeline, one file for each rank
///     samples/*.png         pictures, the latest 24 by name
///
/// All but run.json may be absent, torn, or larger than what is shown. The page needs no network
/// and no other file: curves with axes, legends and values under the pointer, a timeline, tables,
/// in light or dark as its reader likes. While the run runs it reads itself again every five
/// seconds.
///
///     RunPage page("runs/a");
///     page.write();          // at the start, every few seconds, at the end
///
/// metrics.jsonl is read on from where the last write() stopped, and a curve has 1,000 points at
/// most: a call takes some 10 ms however long the run is, plus the pictures; the first one of a run
/// with a million lines 2.5 s. Not thread-safe. Errors: DataError "runs.config", "runs.write" with
/// path.
class RunPage final {
 public:
  explicit RunPage(std::string folder);
  ~RunPage();
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;
  RunPage(RunPage&&) noexcept;
  RunPage& operator=(RunPage&&) noexcept;

  void write();
  /// The page's text, without writing it.
  [[nodiscard]] std::string html();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The same once, reading everything: `RunPage(folder).write()`.
void write_run_page(const std::string& folder);

}  // namespace argosy::runs
