#pragma once

#include <cstdint>
#include <string>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/snapshot.h"

namespace argosy::checkpoint {

/// A checkpoint on the disk, of which what is asked for is read.
///
///     const Checkpoint last("runs/a/checkpoints/step-000000120");
///     engine::load_state_dict(net, last.part("model"));
///     Snapshot all = last.snapshot(world.rank());
///
/// Thread-safe: it holds the manifest and no files. Tensors come on the CPU.
/// Errors: CheckpointError with the path, of the constructor as read_manifest(); of the others: a
///   file that is missing, truncated or changed (every byte that is read is compared with its
///   checksum); a part that is not there, with those that are.
class Checkpoint final {
 public:
  explicit Checkpoint(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// "model", "optimizer" …; of a sharded one too, in the order of the snapshot.
  [[nodiscard]] engine::StateDict part(const std::string& name) const;
  [[nodiscard]] nlohmann::ordered_json values() const;
  /// Of one rank of those that wrote it; empty where it had none.
  /// Errors: UsageError for a rank that the checkpoint does not have.
  [[nodiscard]] engine::StateDict rank_tensors(int64_t rank) const;
  [[nodiscard]] nlohmann::ordered_json rank_values(int64_t rank) const;

  /// All parts, the values, and what `rank` needs; a rank beyond those that wrote it gets no rank
  /// tensors and values.
  [[nodiscard]] Snapshot snapshot(int64_t rank = 0) const;

 private:
  [[nodiscard]] engine::StateDict read_tensors(const std::string& part) const;
  [[nodiscard]] nlohmann::ordered_json read_values(const std::string& name) const;
  void check_rank(int64_t rank) const;

  std::string path_;
  Manifest manifest_;
};

}  // namespace argosy::checkpoint
