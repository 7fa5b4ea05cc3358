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

/// How exactly a model computes, and which updates are skipped for it. Without options: in full,
/// none.
class Precision final {
 public:
  Precision() = default;
  /// `device`: where the network is. Errors: UsageError: a dtype that the device cannot compute in.
  Precision(const AmpOptions& options, at::DeviceType device);

  /// What `forward` gives, in f32 where it gave less.
  [[nodiscard]] Tensors run(const std::function<Tensors(const Tensors&)>& forward,
                            const Tensors& inputs) const;
  [[nodiscard]] bool scales() const { return scaler_.has_value() && scaler_->is_enabled(); }
  void backward(const at::Tensor& loss);

  /// Once per update, when the gradients are averaged: these are unscaled, and it is decided
  /// whether the update is made.
  void begin_update(const optim::Optimizer& optimizer);
  /// Whether the update at hand is one that is passed by.
  [[nodiscard]] bool skipped() const { return skipped_; }
  /// A new batch comes.
  void forget_update() { skipped_ = false; }
  /// The optimizer's step, unless the update is skipped, and the scale for the next one.
  void update(optim::Optimizer& optimizer);
  /// Says that `step` was skipped, the first ones of a row and then more and more rarely.
  /// Errors: DataError, on all ranks alike, when so many were skipped that there is no scale left.
  void report(int64_t step, bool first_rank);

  /// "loss_scale", where there is a scaler.
  void add_to(Logs& logs) const;
  [[nodiscard]] std::string name() const;  ///< "bfloat16"; empty: full precision

  /// Amid an update: as before it.
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
