#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/checkpoint/inspect.h"

namespace argosy::checkpoint {

enum class Best : uint8_t { kHighest, kLowest };

/// Which checkpoints stay.
struct KeepOptions {
  int64_t keep_last = 0;       ///< number of newest whole ones that stay; 0: all
  int64_t keep_best = 0;       ///< number of best ones that stay too, whatever their age
  Best best = Best::kHighest;  ///< kHighest for accuracy, kLowest for a loss

  /// Errors: UsageError that names the field.
  void validate() const;
};

struct PruneOptions {
  KeepOptions keep{};
  /// How the newest whole one is found, which always stays.
  Check check = Check::kChecksums;
  bool dry_run = false;  ///< only reports what it would remove
  /// Counts and removes only folders whose names begin with it.
  std::string prefix{};
};

/// The result of prune().
struct Pruned {
  std::vector<std::string> removed{};
  std::vector<std::string> kept{};
  std::vector<Inspected> left{};  ///< torn or damaged ones, about which a person decides
};

/// Removes whole checkpoints in `directory` that the options do not keep, each in one step, and
/// what killed processes left. The newest whole one stays, and so does every one that is not whole.
/// Errors: CheckpointError if the directory cannot be read or a removal fails, with the system's
/// message.
Pruned prune(const std::string& directory, const PruneOptions& options);

}  // namespace argosy::checkpoint
