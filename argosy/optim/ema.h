#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"
#include "argosy/engine/state_dict.h"

namespace argosy::optim {

/// What an average does at its beginning.
enum class EmaWarmup {
  kNone,  ///< the decay as given, from the second update on (PyTorch)
  /// min(decay, (1 + n) / (10 + n)) with n updates made before: the weights of the first steps are
  /// forgotten soon (TensorFlow's num_updates, Paddle's thres_steps, timm).
  kNumUpdates,
};

/// What an average does with the model's buffers (the statistics of batch norm).
enum class EmaBuffers {
  kLeave,    ///< they stay the model's own (PyTorch's use_buffers = False)
  kAverage,  ///< those of floating point are averaged, others taken over as they are
};

struct ExponentialMovingAverageOptions {
  double decay = 0.999;  ///< in [0, 1]
  EmaWarmup warmup = EmaWarmup::kNone;
  EmaBuffers buffers = EmaBuffers::kLeave;
};

/// Where an average stands. The tensors are shared with it; clone() before going on.
struct EmaState {
  int64_t num_updates = 0;
  engine::StateDict averages{};
};

/// An average of a model's weights over its training, weighted towards the last: often a better
/// model than the last weights themselves.
///
///     optim::ExponentialMovingAverage ema(net, {.decay = 0.999});
///     for (…) { …; optimizer.step(); ema.update(); }
///     {
///       const optim::Averaged weights(ema);          // the model has the average …
///       evaluate(net);
///     }                                              // … and here its own again
///
/// Average of the first update: the weights; after: a = a + (1 - decay) (w - a), by at::lerp.
/// While the average is applied the model's tensors have other memory, and then their own again:
/// every handle on them sees it, a view or a raw pointer into the memory of before does not. So
/// nothing is written that other processes share (share_parameters): each rank applies and
/// restores by itself, when it likes. Nothing is sent. Not thread-safe. Cost: update() reads
/// weights and averages and writes the averages; memory of one copy of the weights, of two while
/// applied.
/// Source: Polyak & Juditsky, 1992; torch/optim/swa_utils.py of 2.x, AveragedModel with
///   get_ema_multi_avg_fn; paddle.static.ExponentialMovingAverage for apply() and restore().
class ExponentialMovingAverage final {
 public:
  /// Of a module, or of what holds or wraps one: parameters, and buffers where they are asked for.
  /// A list of named tensors has no buffers.
  /// Errors: UsageError for options out of range, a model without parameters.
  template <engine::NamedParameterSource T>
  explicit ExponentialMovingAverage(const T& model,
                                    const ExponentialMovingAverageOptions& options = {})
      : ExponentialMovingAverage(
            engine::named_parameters(model), buffers_of(model, options.buffers), options) {}
  ExponentialMovingAverage(const engine::NamedTensors& parameters,
                           const engine::NamedTensors& buffers,
                           const ExponentialMovingAverageOptions& options);

  /// The weights enter the average. Errors: UsageError while it is applied.
  void update();

  /// The model gets the average; its own weights are kept aside.
  /// Errors: UsageError before the first update() and when it is applied already.
  void apply();
  /// The model gets its own weights back. Nothing to do when the average is not applied.
  void restore() noexcept;
  [[nodiscard]] bool applied() const noexcept { return !kept_.empty(); }

  [[nodiscard]] int64_t num_updates() const noexcept { return num_updates_; }
  /// The averages by structured name; those of a model's state dict that are averaged.
  [[nodiscard]] EmaState state_dict() const;
  /// Takes over copies. All or nothing. Errors: CheckpointError that names what is missing,
  /// unexpected or of another shape or dtype.
  void load_state_dict(const EmaState& state);

 private:
  template <typename T>
  static engine::NamedTensors buffers_of(const T& model, EmaBuffers buffers) {
    if constexpr (engine::detail::IsNamedList<T>) {
      return {};
    } else {
      return buffers == EmaBuffers::kLeave
                 ? engine::NamedTensors()
                 : engine::detail::to_named(engine::module_of(model).named_buffers());
    }
  }
  void add(const engine::NamedTensors& tensors);

  ExponentialMovingAverageOptions options_;
  engine::NamedTensors own_{};          // the model's, each once
  std::vector<at::Tensor> averages_{};  // beside own_
  std::vector<at::Tensor> kept_{};      // beside own_, what they held, while it is applied
  int64_t num_updates_ = 0;
};

/// The model has the average while this lives.
class Averaged final {
 public:
  /// `average` must live longer. Errors: UsageError as ExponentialMovingAverage::apply().
  explicit Averaged(ExponentialMovingAverage& average) : average_(average) { average_.apply(); }
  ~Averaged() { average_.restore(); }
  Averaged(const Averaged&) = delete;
  Averaged& operator=(const Averaged&) = delete;
  Averaged(Averaged&&) = delete;
  Averaged& operator=(Averaged&&) = delete;

 private:
  ExponentialMovingAverage& average_;
};

}  // namespace argosy::optim
