#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

/// What to do with a file that is in its place already and is not the published one.
enum class Mismatch {
  kRefuse,   ///< an error: it may be somebody's own, a part of the set for instance
  kReplace,  ///< the published one takes its place, once it has come
};

/// How much of a file has come.
struct FetchProgress {
  std::string_view file{};  ///< "train-images-idx3-ubyte.gz"
  int64_t bytes = 0;        ///< fewer than before: the file was begun anew
  int64_t total = 0;
  bool ended = false;  ///< this transfer is over; the file is whole and right if bytes == total
};

struct FetchOptions {
  /// Folder for the files; empty: folder_of(name).
  std::string to{};
  /// Where to fetch from instead of the published addresses, tried in this order: URLs (http,
  /// https, file) or folders, with the files under <mirror>/<name>/. Any copy of a data home is
  /// one. Empty: those in ARGOSY_DATA_MIRROR, separated by blanks.
  std::vector<std::string> mirrors{};
  /// Only these files of the set; empty: all (of alternatives, the first).
  std::vector<std::string> files{};
  Mismatch mismatch = Mismatch::kRefuse;
  int tries = 3;  ///< of each address; a file or folder of this machine is tried once
  /// Before the second try; twice as long before each further one.
  std::chrono::milliseconds first_pause{1000};
  std::chrono::milliseconds connect_timeout{20'000};
  /// A server is given up from which nothing has come for so long. Whole seconds.
  std::chrono::seconds stall_timeout{30};
  /// How long to wait for another process that fetches into the folder while nothing comes.
  std::chrono::milliseconds lock_patience{300'000};
  /// Called from the fetching thread, first with what an earlier try has left. Default: silence.
  std::function<void(const FetchProgress& progress)> on_bytes = nullptr;

  /// Errors: UsageError naming the field.
  void validate() const;
};

struct FetchedFile {
  std::string path{};
  int64_t bytes = 0;
  bool was_there = false;  ///< right already: nothing was fetched
};

struct Fetched {
  std::string folder{};
  std::vector<FetchedFile> files{};
};

/// Brings the files of a data set, unless they are there, and returns where they are.
///
///     const std::string folder = datasets::fetch("mnist").folder;
///
/// What is there is checked (size and MD5), what comes is checked while it comes, and a file has
/// its final name only when it is whole. A transfer that broke goes on where it ended, in a later
/// run too. Any number of processes may call it at once: one fetches, the others wait.
///
/// Blocks. Thread-safe. Errors: UsageError for a name that is none, or of a set that nobody can
/// fetch (it says what to do); DataError: nothing came (each address with its reason), the bytes
/// are not the published ones (MD5 expected and got), the folder cannot be written, the disk is
/// full.
Fetched fetch(std::string_view name, const FetchOptions& options = {});
/// The same for a set of one's own.
Fetched fetch(const Row& set, const FetchOptions& options = {});

}  // namespace argosy::datasets
