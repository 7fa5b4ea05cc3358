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
  kTorn,     ///< a temporary name, no manifest, a file missing or of another length
  kDamaged,  ///< bytes are not those that were written
  kNewer,    ///< of a format version that this library does not read
};
/// "whole", "torn", "damaged", "newer".
[[nodiscard]] std::string_view to_string(State state);

enum class Check : uint8_t {
  kSizes,      ///< the manifest, and that each file is there in its length
  kChecksums,  ///< reads every byte of every file
};

/// What a folder turned out to be.
struct Inspected {
  std::string path{};
  State state = State::kWhole;
  std::string reason{};                ///< why it is not whole, with the file
  std::optional<Manifest> manifest{};  ///< where it could be read
};

/// Looks at one folder. Throws nothing for what it finds; a folder that is not there is torn.
[[nodiscard]] Inspected inspect(const std::string& folder, Check check);

/// Is there a manifest.json in `path`?
[[nodiscard]] bool is_checkpoint(const std::string& path);

/// All checkpoints in `directory`, torn and temporary ones too, the newest first: by step, then by
/// time; those without a manifest come last. Other folders and links are passed over.
/// Errors: CheckpointError: the directory cannot be read.
[[nodiscard]] std::vector<Inspected> list(const std::string& directory, Check check);

/// What find_newest() found.
struct Newest {
  std::optional<std::string> path{};  ///< of the newest whole one; nothing: there is none
  std::optional<Manifest> manifest{};
  std::vector<Inspected> skipped{};  ///< newer ones, and all that are torn, with the reason

  /// A line for each that was skipped, for a log.
  [[nodiscard]] std::vector<std::string> remarks() const;
};

/// The newest checkpoint of which every byte is as it was written. A directory that is not there
/// has none.
/// `prefix`: only folders whose names begin with it.
/// Cost: reads it whole, and newer ones up to the first damage.
/// Errors: CheckpointError: the directory cannot be read.
[[nodiscard]] Newest find_newest(const std::string& directory, std::string_view prefix = {});

}  // namespace argosy::checkpoint
