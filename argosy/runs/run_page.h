#pragma once

#include <memory>
#include <string>

namespace argosy::runs {

/// Writes `folder`/index.html, a page that shows a run, from the files in the folder:
///
///     run.json              RunConfig: what was run, where, how it ended
///     metrics.jsonl         figures over the steps (MetricsLog)
///     rank<k>.json          what each rank says of itself: an object, its names become columns
///     servers.jsonl, .json  figures of servers over the steps, and what each told last
///     timeline*.json        events::Timeline, one file for each rank
///     samples/*.json        pictures with captions (write_samples()), the latest 24 by name
///     samples/*.png         pictures, likewise
///
/// All files except run.json may be missing, torn, or larger than what is shown. The page needs no
/// network and no other file. It has curves with axes, legends and values under the pointer, a
/// timeline and tables, in the reader's light or dark scheme. During the run it reloads itself
/// every five seconds.
///
///     RunPage page("runs/a");
///     page.write();          // at the start, every few seconds, at the end
///
/// A call reads metrics.jsonl from where the last write() stopped, and a curve has at most 1,000
/// points. Not thread-safe.
/// Cost: some 10 ms plus the pictures, however long the run is. The first call for a run with a
/// million lines takes 2.5 s.
/// Errors: DataError "runs.config", "runs.write" with the path.
class RunPage final {
 public:
  explicit RunPage(std::string folder);
  ~RunPage();
  RunPage(const RunPage&) = delete;
  RunPage& operator=(const RunPage&) = delete;
  RunPage(RunPage&&) noexcept;
  RunPage& operator=(RunPage&&) noexcept;

  void write();
  /// Returns the page's text without writing it.
  [[nodiscard]] std::string html();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes the page once, from all files: `RunPage(folder).write()`.
void write_run_page(const std::string& folder);

}  // namespace argosy::runs
