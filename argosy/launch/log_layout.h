#pragma once

#include <map>
#include <string>
#include <vector>

#include "argosy/launch/log_file.h"

namespace argosy::launch {

/// Which files the ranks' output goes to.
enum class LogLayout {
  kArgosy,    ///< <dir>/<run>/rank<k>.log, both streams; rank<k>.restart<n>.log after a restart;
              ///< all.log (all.node<n>.log), every line of all with its time;
              ///< rank<k>.error.json
  kTorchrun,  ///< <dir>/<id>_<run>/attempt_<n>/<local rank>/stdout.log, stderr.log, error.json
  kPaddle,    ///< <dir>/workerlog.<local rank>, both streams, appended to; error.<local rank>.json
};

/// Some of a rank's two streams, for each local rank. Source: torchrun's -r and -t.
struct StreamChoice {
  static constexpr int kOut = 1;
  static constexpr int kErr = 2;
  int everyone = 0;            ///< 0 none, 1 standard output, 2 standard error, 3 both
  std::map<int, int> ranks{};  ///< where it differs

  [[nodiscard]] int of(int local_rank) const;
  [[nodiscard]] bool any() const { return everyone != 0 || !ranks.empty(); }
};

/// Where a rank's streams go.
struct RankFiles {
  bool out_shown = true;
  bool err_shown = true;
  std::string out{};  ///< path; "": no file
  std::string err{};  ///< may be the same as out
  LogFile::Start start = LogFile::Start::kEmpty;
};

/// What decides it, of options and job.
struct LogPlan {
  LogLayout layout = LogLayout::kArgosy;
  std::string folder{};  ///< of this run; "": no files
  bool overwrite = false;
  StreamChoice redirects{};  ///< to files only
  StreamChoice tee{};        ///< to files too
  std::vector<std::string>
      out_filters{};  ///< lines with one of these go to a file of their own too
  std::vector<std::string> err_filters{};

  [[nodiscard]] RankFiles files(int rank, int local_rank, int restart) const;
  /// Does each rank have files of its own that take all that it prints?
  [[nodiscard]] bool each_rank_whole() const {
    return !folder.empty() && layout != LogLayout::kTorchrun;
  }
  /// Where the rank may say, in torchrun's form, what it ended with; "": nowhere.
  [[nodiscard]] std::string error_file(int rank, int local_rank, int restart) const;
  /// What out_filters (or err_filters) choose, of all ranks of this node; "": nothing.
  [[nodiscard]] std::string filtered(bool out, int node, int restart) const;
  /// Paddle's list of all ranks' endpoints; "": none.
  [[nodiscard]] std::string endpoints() const;
  /// Of all ranks of node `node`, beside what the other tool would write; "": none.
  [[nodiscard]] std::string combined(int node) const;
  /// As the start's table shows it: "runs/r1/rank<k>.log".
  [[nodiscard]] std::string pattern() const;
};

}  // namespace argosy::launch
