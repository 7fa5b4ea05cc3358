#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

/// What fetch() does with a file that exists already and is not the published one.
enum class FileMismatch {
  kRefuse,   ///< an error, because it may be somebody's own, for instance a part of the set
  kReplace,  ///< the published one replaces it once it has come
};

/// How much of a file has come.
struct FetchProgress {
  std::string_view file{};  ///< "train-images-idx3-ubyte.gz"
  int64_t bytes = 0;        ///< if it is fewer than before, the file was begun anew
  int64_t total = 0;
  bool ended = false;  ///< this transfer is over; the file is whole and correct if bytes == total
};

struct FetchOptions {
  /// Folder for the files; empty: folder_of(name).
  std::string to{};
  /// Sources instead of the published addresses, tried in this order: URLs (http, https, file) or
  /// folders, with the files under <mirror>/<name>/. Any copy of a data home is a mirror. Empty:
  /// those in ARGOSY_DATA_MIRROR, separated by blanks.
  std::vector<std::string> mirrors{};
  /// The files of the set to fetch. Empty: all of them; of alternatives, the first.
  std::vector<std::string> files{};
  FileMismatch mismatch = FileMismatch::kRefuse;
  int tries = 3;  ///< tries of each address; a file or folder of this machine is tried once
  /// Pause before the second try. It doubles before each further try.
  std::chrono::milliseconds first_pause{1000};
  std::chrono::milliseconds connect_timeout{20'000};
  /// A server that sends nothing for this long is given up. Whole seconds.
  std::chrono::seconds stall_timeout{30};
  /// How long to wait for another process that fetches into the folder but makes no progress.
  std::chrono::milliseconds lock_patience{300'000};
  /// Called on the fetching thread, first with the bytes that an earlier try left. Default: no
  /// calls.
  std::function<void(const FetchProgress& progress)> on_bytes = nullptr;

  /// Errors: UsageError naming the field.
  void validate() const;
};

struct FetchedFile {
  std::string path{};
  int64_t bytes = 0;
  bool was_there = false;  ///< it was correct already, so nothing was fetched
};

struct Fetched {
  std::string folder{};
  std::vector<FetchedFile> files{};
};

/// Fetches the files of a data set unless they are there, and returns where they are.
///
///     const std::string folder = datasets::fetch("mnist").folder;
///
/// It checks existing files (size and MD5), and checks new bytes while they come. A file has its
/// final name only when it is whole. A broken transfer resumes where it ended, in a later run too.
/// Any number of processes may call it at once: one fetches, the others wait.
///
/// Blocks. Thread-safe. Errors: UsageError for an unknown name, and for a set that nobody can fetch
/// (the message says what to do); DataError when nothing came (with each address and its reason),
/// the bytes are not the published ones (with the MD5 expected and got), the folder cannot be
/// written, or the disk is full.
Fetched fetch(std::string_view name, const FetchOptions& options = {});
/// Fetches the files of a set of your own.
Fetched fetch(const Row& set, const FetchOptions& options = {});

}  // namespace argosy::datasets
