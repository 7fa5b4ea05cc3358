#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "argosy/optim/grad_scaler.h"
#include "argosy/train/amp.h"
#include "argosy/train/feed.h"
#include "argosy/train/logs.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// The precision in which a model computes, and the updates that it skips because of it. Without
/// options: full precision, no skipped updates.
class Precision final {
 public:
  Precision() = default;
  /// `device`: the network's. Errors: UsageError for a dtype in which the device cannot compute.
  Precision(const AmpOptions& options, at::DeviceType device);
  /// For a network that casts by itself.
  explicit Precision(const optim::GradScalerOptions& scaler) { scaler_.emplace(scaler); }

  /// Runs `forward` and returns its outputs, with 16-bit ones converted to f32.
  [[nodiscard]] Tensors run(const std::function<Tensors(const Tensors&)>& forward,
                            const Tensors& inputs) const;
  [[nodiscard]] bool scales() const { return scaler_.has_value() && scaler_->is_enabled(); }
  void backward(const at::Tensor& loss);

  /// Call it once per update, after the gradients are averaged: unscales them and decides if the
  /// update is made.
  void begin_update(const optim::Optimizer& optimizer);
  /// True if the current update is skipped.
  [[nodiscard]] bool skipped() const { return skipped_; }
  /// Call it before a new batch.
  void forget_update() { skipped_ = false; }
  /// Makes the optimizer's step unless the update is skipped, and sets the scale of the next one.
  void update(optim::Optimizer& optimizer);
  /// Logs that `step` was skipped: each of the first skips in a row, then more and more rarely.
  /// Errors: DataError, on all ranks alike, if so many updates were skipped that no scale is left.
  void report(int64_t step, bool first_rank);

  /// Adds "loss_scale" if there is a scaler.
  void add_to(Logs& logs) const;
  [[nodiscard]] std::string name() const;  ///< "bfloat16"; empty for full precision

  /// Returns the state; during an update, the state from before it.
  [[nodiscard]] nlohmann::ordered_json state() const;
  /// Errors: CheckpointError.
  void load_state(const nlohmann::ordered_json& state);

 private:
  std::optional<at::ScalarType> dtype_{};
  at::DeviceType device_ = at::kCPU;
  std::optional<optim::GradScaler> scaler_{};
  bool amid_update_ = false;  // between begin_update() and the end of update()
  bool skipped_ = false;
  int64_t skipped_in_a_row_ = 0;
};

}  // namespace argosy::train::detail
