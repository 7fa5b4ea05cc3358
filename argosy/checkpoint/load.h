#pragma once

#include <cstdint>
#include <string>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/snapshot.h"

namespace argosy::checkpoint {

/// A checkpoint on the disk. It reads only what you ask for.
///
///     const Checkpoint last("runs/a/checkpoints/step-000000120");
///     engine::load_state_dict(net, last.part("model"));
///     Snapshot all = last.snapshot(world.rank());
///
/// Tensors come on the CPU. Thread-safe, because it holds the manifest and no files.
/// Errors: CheckpointError with the path. The constructor throws as read_manifest() does. The
/// others throw for a file that is missing, truncated or changed (every byte that is read is
/// checked), and for a missing part, listing the existing ones.
class Checkpoint final {
 public:
  explicit Checkpoint(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// Returns the tensors of a part ("model", "optimizer" …) in the order of the snapshot, also if
  /// it is sharded.
  [[nodiscard]] engine::StateDict part(const std::string& name) const;
  [[nodiscard]] nlohmann::ordered_json values() const;
  /// Returns what one of the writing ranks saved for itself, or nothing if it saved nothing.
  /// Errors: UsageError for a rank that the checkpoint does not have.
  [[nodiscard]] engine::StateDict rank_tensors(int64_t rank) const;
  [[nodiscard]] nlohmann::ordered_json rank_values(int64_t rank) const;

  /// Returns all parts, the values, and what `rank` saved for itself. A rank beyond the writing
  /// ranks gets no rank tensors and values.
  [[nodiscard]] Snapshot snapshot(int64_t rank = 0) const;

 private:
  [[nodiscard]] engine::StateDict read_tensors(const std::string& part) const;
  [[nodiscard]] nlohmann::ordered_json read_values(const std::string& name) const;
  void check_rank(int64_t rank) const;

  std::string path_;
  Manifest manifest_;
};

}  // namespace argosy::checkpoint
