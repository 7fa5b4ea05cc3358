#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/checkpoint/inspect.h"

namespace argosy::checkpoint {

enum class Best : uint8_t { kHighest, kLowest };

/// Which checkpoints stay.
struct KeepOptions {
  int64_t keep_last = 0;       ///< so many of the newest whole ones; 0: all
  int64_t keep_best = 0;       ///< and so many with the best score, however old
  Best best = Best::kHighest;  ///< what a good score is: kHighest for accuracy, kLowest for loss

  /// Errors: UsageError that names the field.
  void validate() const;
};

struct PruneOptions {
  KeepOptions keep{};
  /// How the newest whole one, which always stays, is found.
  Check check = Check::kChecksums;
  bool dry_run = false;  ///< says what would go
  /// Only folders whose names begin with it are counted and removed.
  std::string prefix{};
};

/// What prune() did.
struct Pruned {
  std::vector<std::string> removed{};
  std::vector<std::string> kept{};
  std::vector<Inspected> left{};  ///< torn or damaged: they count for nothing, and a person decides
};

/// Removes the whole checkpoints of `directory` that nobody wants any more, each in one step, and
/// what killed processes left. Never the newest whole one, nor one that is not whole.
/// Errors: CheckpointError: the directory cannot be read; the system's words for a removal.
Pruned prune(const std::string& directory, const PruneOptions& options);

}  // namespace argosy::checkpoint
