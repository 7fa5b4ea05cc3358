#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/even_part.h"

namespace argosy::checkpoint {

/// The latest version of the format that this library reads. It writes 2 where tensors lie in
/// pieces, and else 1, which older ones read.
inline constexpr int64_t kFormatVersion = 2;
inline constexpr std::string_view kManifestName = "manifest.json";

struct ManifestFile {
  std::string name{};  ///< name in the folder: "model.safetensors"
  int64_t bytes = 0;
  std::string checksum{};  ///< "xxh3:0123456789abcdef"
  /// The digits of its blocks' hashes, see FileChecksums. Empty: it is small, or of an older
  /// version.
  std::string blocks{};
};

/// Elements of a tensor that lie in one file, flat, under the tensor's name.
struct ManifestPiece {
  std::string file{};
  IndexRange range{};
};

struct ManifestTensor {
  std::string part{};   ///< "model", "optimizer", "ema", "rank0"
  std::string name{};   ///< "layer1.0.conv1.weight"; in the optimizer's part "conv1.weight/exp_avg"
  std::string dtype{};  ///< safetensors' name: "F32"
  std::vector<int64_t> shape{};
  std::string file{};  ///< empty: it lies in pieces
  /// Each element is in one of them; in the order of the elements.
  std::vector<ManifestPiece> pieces{};
  /// The dims in the order in which pieces count elements, the slowest first; empty: row-major.
  std::vector<int64_t> order{};
};

/// Returns the number of elements.
[[nodiscard]] int64_t numel(const ManifestTensor& tensor);

/// The content of a checkpoint's `manifest.json`: all that is known without reading a tensor. A
/// folder without one is no checkpoint.
struct Manifest {
  int64_t step = 0;
  int64_t epoch = 0;
  std::optional<double> score{};  ///< what keep_best compares; finite
  std::string time{};             ///< UTC, "2026-03-01T12:00:00.000Z"
  int64_t world_size = 1;
  std::string library{};             ///< "argosy 0.1.0"
  std::vector<std::string> parts{};  ///< in the order of the snapshot, without the ranks' own parts
  std::vector<ManifestFile> files{};
  std::vector<ManifestTensor> tensors{};  ///< in the order of the snapshot

  /// Returns nullptr if there is no such file.
  [[nodiscard]] const ManifestFile* find_file(std::string_view name) const;
  /// Returns the size of all its files and itself.
  [[nodiscard]] int64_t bytes() const;
  [[nodiscard]] int64_t version() const;
};

/// Returns the usual name of a checkpoint's folder: "step-000000120".
[[nodiscard]] std::string step_name(int64_t step);

/// "argosy 0.1.0"
[[nodiscard]] std::string library_version();

/// Returns the text of manifest.json. Its last line but one is the checksum of everything before
/// that line, in later versions too, so no byte changes unseen.
/// Errors: CheckpointError for a name that is not UTF-8.
[[nodiscard]] std::string to_text(const Manifest& manifest);

/// Errors: CheckpointError with `path` if the text is damaged (the checksum differs), has a newer
/// version, or has invalid fields (such as names that lead out of the folder, or a tensor of which
/// an element is in no piece, or in two).
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

/// Returns the manifest of a checkpoint's folder.
/// Errors: as parse_manifest; also without a manifest, because the folder is torn or no checkpoint.
[[nodiscard]] Manifest read_manifest(const std::string& folder);

}  // namespace argosy::checkpoint
