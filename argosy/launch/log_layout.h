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

/// What a rank writes to.
enum class StandardStream { kOut, kErr };

/// Some of a rank's two streams, for each local rank. Source: torchrun's -r and -t.
struct StreamChoice {
  static constexpr int kOut = 1;
  static constexpr int kErr = 2;
  int everyone = 0;            ///< 0 none, 1 standard output, 2 standard error, 3 both
  std::map<int, int> ranks{};  ///< local ranks whose choice differs

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

/// What options and job say about files.
struct LogPlan {
  LogLayout layout = LogLayout::kArgosy;
  std::string folder{};  ///< of this run; "": no files
  bool overwrite = false;
  int servers = 0;           ///< of the node's ranks, the first: kPaddle names them apart
  StreamChoice redirects{};  ///< to files only
  StreamChoice tee{};        ///< to files too
  /// Lines that contain one of these also go to a file of their own.
  std::vector<std::string> out_filters{};
  std::vector<std::string> err_filters{};

  [[nodiscard]] const std::vector<std::string>& filters(StandardStream stream) const {
    return stream == StandardStream::kOut ? out_filters : err_filters;
  }
  [[nodiscard]] RankFiles files(int rank, int local_rank, int restart) const;
  /// True if each rank has files of its own that receive all that it prints.
  [[nodiscard]] bool each_rank_whole() const {
    return !folder.empty() && layout != LogLayout::kTorchrun;
  }
  /// Returns the path at which the rank may write, in torchrun's form, why it ended, or "".
  [[nodiscard]] std::string error_file(int rank, int local_rank, int restart) const;
  /// Returns the path for the lines of all ranks of this node that the filters of
  /// `stream` choose, or "" if there is none.
  [[nodiscard]] std::string filtered(StandardStream stream, int node, int restart) const;
  /// Returns the path of Paddle's list of all ranks' endpoints, or "" if there is none.
  [[nodiscard]] std::string endpoints() const;
  /// Returns the path of the combined log of node `node`, which stands beside the other tool's
  /// files, or "" if there is none.
  [[nodiscard]] std::string combined(int node) const;
  /// Returns the pattern in the start table: "runs/r1/rank<k>.log".
  [[nodiscard]] std::string pattern() const;
};

}  // namespace argosy::launch
