#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::checkpoint {

/// The version of the format that this library writes, and the last one that it reads.
inline constexpr int64_t kFormatVersion = 1;
inline constexpr std::string_view kManifestName = "manifest.json";

struct ManifestFile {
  std::string name{};  ///< in the folder: "model.safetensors"
  int64_t bytes = 0;
  std::string checksum{};  ///< "xxh3:0123456789abcdef"
};

struct ManifestTensor {
  std::string part{};   ///< "model", "optimizer", "ema", "rank0"
  std::string name{};   ///< "layer1.0.conv1.weight"; of the optimizer "conv1.weight/exp_avg"
  std::string dtype{};  ///< as safetensors say it: "F32"
  std::vector<int64_t> shape{};
  std::string file{};
};

/// What `manifest.json` of a checkpoint says: all that is known without reading a tensor. A folder
/// without one is no checkpoint.
struct Manifest {
  int64_t version = kFormatVersion;
  int64_t step = 0;
  int64_t epoch = 0;
  std::optional<double> score{};  ///< of who keeps the best ones; finite
  std::string time{};             ///< UTC, "2026-03-01T12:00:00.000Z"
  int64_t world_size = 1;
  /// For each rank the number of its host, see comm::Group::hosts(); empty: not known.
  std::vector<int> hosts{};
  std::string library{};             ///< "argosy 0.1.0"
  std::vector<std::string> parts{};  ///< in the order of the snapshot, without those of ranks
  std::vector<ManifestFile> files{};
  std::vector<ManifestTensor> tensors{};  ///< in the order of the snapshot

  /// nullptr when there is none.
  [[nodiscard]] const ManifestFile* find_file(std::string_view name) const;
  /// Of all its files and itself.
  [[nodiscard]] int64_t bytes() const;
};

/// "argosy 0.1.0"
[[nodiscard]] std::string library_version();

/// The text of manifest.json. Its last line but one is the checksum of all before that line, so
/// that no byte of it changes unseen; this stays so in later versions.
/// Errors: CheckpointError: a name that is no UTF-8.
[[nodiscard]] std::string to_text(const Manifest& manifest);

/// Errors: CheckpointError with `path`: damaged (the checksum differs); a newer version; fields
/// that a manifest cannot have (names that lead out of the folder too).
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

/// That of a checkpoint's folder.
/// Errors: as parse_manifest; no manifest: the folder is torn or none of a checkpoint.
[[nodiscard]] Manifest read_manifest(const std::string& folder);

}  // namespace argosy::checkpoint
