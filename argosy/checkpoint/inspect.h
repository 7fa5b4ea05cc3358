#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/checkpoint/manifest.h"

namespace argosy::checkpoint {

enum class State : uint8_t {
  kWhole,
  kTorn,     ///< a temporary name, no manifest, a file that is missing or has another length
  kDamaged,  ///< bytes differ from those that were written
  kNewer,    ///< has a format version that this library does not read
};
/// "whole", "torn", "damaged", "newer".
[[nodiscard]] std::string_view to_string(State state);

enum class Check : uint8_t {
  kSizes,      ///< checks the manifest, and that each file has its length
  kChecksums,  ///< reads every byte of every file
};

/// The result of inspecting a folder.
struct Inspected {
  std::string path{};
  State state = State::kWhole;
  std::string reason{};                ///< why it is not whole, and the file
  std::optional<Manifest> manifest{};  ///< if it could be read
};

/// Inspects one folder. It throws nothing about what it finds; a missing folder is torn.
[[nodiscard]] Inspected inspect(const std::string& folder, Check check);

/// True if `path` has a manifest.json.
[[nodiscard]] bool is_checkpoint(const std::string& path);

/// Returns all checkpoints in `directory`, torn and temporary ones too. The newest comes first, by
/// step, then by time; those without a manifest come last. Other folders and links are skipped.
/// Errors: CheckpointError if the directory cannot be read.
[[nodiscard]] std::vector<Inspected> list(const std::string& directory, Check check);

/// The result of find_newest().
struct Newest {
  std::optional<std::string> path{};  ///< the newest whole checkpoint, if there is one
  std::optional<Manifest> manifest{};
  std::vector<Inspected> skipped{};  ///< newer ones and all torn ones, with the reason

  /// Returns a line for a log per skipped checkpoint.
  [[nodiscard]] std::vector<std::string> remarks() const;
};

/// Returns the newest checkpoint in which every byte is as it was written. A missing directory has
/// no checkpoint.
/// `prefix`: only folders whose names begin with it count.
/// Cost: reads the whole checkpoint, and newer ones up to the first damage.
/// Errors: CheckpointError if the directory cannot be read.
[[nodiscard]] Newest find_newest(const std::string& directory, std::string_view prefix = {});

}  // namespace argosy::checkpoint
