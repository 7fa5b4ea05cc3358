#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/tensor_reader.h"

namespace argosy::checkpoint {

/// When the values of a checkpoint's tensors are read.
enum class Reading : uint8_t {
  kNow,
  /// When somebody wants them, and of a divided tensor only this rank's part, as
  /// engine::load_state_dict(), optimizers and averages do: a model then needs no memory but its
  /// own. They throw CheckpointError for bytes that changed. To any operator of libtorch such a
  /// tensor is an ordinary one, but an error becomes NaN and a line in the log.
  kWhenUsed,
};

/// A checkpoint on the disk. It reads only what you ask for.
///
///     const Checkpoint last("runs/a/checkpoints/step-000000120");
///     engine::load_state_dict(net, last.part("model", Reading::kWhenUsed));
///     Snapshot all = last.snapshot(world.rank());
///
/// Any number of ranks may read what any number of ranks wrote. Tensors come on the CPU.
/// Thread-safe.
/// Errors: CheckpointError with the path. The constructor throws as read_manifest() does. The
/// others throw for a file that is missing, truncated or changed (every byte that is read is
/// checked), and for a missing part, listing the existing ones.
class Checkpoint final {
 public:
  explicit Checkpoint(const std::string& path);

  [[nodiscard]] const std::string& path() const { return reader_->folder(); }
  [[nodiscard]] const Manifest& manifest() const { return reader_->manifest(); }

  /// Returns the tensors of a part ("model", "optimizer" …) in the order of the snapshot, also if
  /// it is sharded.
  [[nodiscard]] engine::StateDict part(const std::string& name,
                                       Reading reading = Reading::kNow) const;
  [[nodiscard]] nlohmann::ordered_json values() const;
  /// Returns what one of the writing ranks saved for itself, or nothing if it saved nothing.
  /// Errors: UsageError for a rank that the checkpoint does not have.
  [[nodiscard]] engine::StateDict rank_tensors(int64_t rank) const;
  [[nodiscard]] nlohmann::ordered_json rank_values(int64_t rank) const;

  /// Returns all parts, the values, and what `rank` saved for itself. A rank beyond the writing
  /// ranks gets no rank tensors and values.
  [[nodiscard]] Snapshot snapshot(int64_t rank = 0, Reading reading = Reading::kNow) const;

 private:
  [[nodiscard]] engine::StateDict read_tensors(const std::string& part, Reading reading) const;
  [[nodiscard]] nlohmann::ordered_json read_values(const std::string& name) const;
  void check_rank(int64_t rank) const;

  std::shared_ptr<const TensorReader> reader_;
};

}  // namespace argosy::checkpoint
