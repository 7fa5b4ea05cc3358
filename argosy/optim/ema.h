#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"
#include "argosy/engine/state_dict.h"

namespace argosy::optim {

/// How an average begins.
enum class EmaWarmup {
  kNone,  ///< the given decay, from the second update on (PyTorch)
  /// min(decay, (1 + n) / (10 + n)) after n updates, so that the weights of the first steps are
  /// forgotten soon (TensorFlow's num_updates, Paddle's thres_steps, timm).
  kNumUpdates,
};

/// What an average does with the model's buffers (the statistics of batch norm).
enum class EmaBuffers {
  kLeave,    ///< the model keeps its own (PyTorch's use_buffers = False)
  kAverage,  ///< floating buffers are averaged, others are copied
};

struct ExponentialMovingAverageOptions {
  double decay = 0.999;  ///< in [0, 1]
  EmaWarmup warmup = EmaWarmup::kNone;
  EmaBuffers buffers = EmaBuffers::kLeave;
};

/// The state of an average. It shares the average's tensors: clone them before the next update.
struct EmaState {
  int64_t num_updates = 0;
  engine::StateDict averages{};
};

/// An average of a model's weights over its training, weighted towards the last ones. It is often a
/// better model than the last weights.
///
///     optim::ExponentialMovingAverage ema(net, {.decay = 0.999});
///     for (…) { …; optimizer.step(); ema.update(); }
///     {
///       const optim::Averaged weights(ema);          // the model has the average
///       evaluate(net);
///     }                                              // here it has its own weights again
///
/// The first update copies the weights; later ones compute a = a + (1 - decay) (w - a) by at::lerp.
/// While the average is applied, the model's tensors have other memory. Every handle on them sees
/// that, but a view or a raw pointer into the former memory does not. Memory that other processes
/// share (share_parameters) is never written, so each rank may apply and restore on its own.
/// Nothing is sent. Where ranks divide the model (parallel::fully_shard()), each averages its part;
/// apply(), restore() and load_state_dict() are then for all ranks alike. A model may be wrapped
/// again while it is not applied, and divided in another way: the next update() or apply() gathers
/// the averages then. Not thread-safe.
/// Averages of 16-bit weights are f32.
/// Cost: update() reads weights and averages and writes the averages. The memory is one copy of the
/// weights (in f32), or two while applied.
/// Source: Polyak & Juditsky, 1992; torch/optim/swa_utils.py of 2.x, AveragedModel with
///   get_ema_multi_avg_fn; paddle.static.ExponentialMovingAverage for apply() and restore().
class ExponentialMovingAverage final {
 public:
  /// Averages the parameters of a module, or of what holds or wraps one, and its buffers if the
  /// options ask for it. A list of named tensors has no buffers.
  /// Errors: UsageError for options out of range, or a model without parameters.
  template <engine::NamedParameterSource T>
  explicit ExponentialMovingAverage(const T& model,
                                    const ExponentialMovingAverageOptions& options = {})
      : ExponentialMovingAverage(
            engine::named_parameters(model), buffers_of(model, options.buffers), options) {}
  ExponentialMovingAverage(const engine::NamedTensors& parameters,
                           const engine::NamedTensors& buffers,
                           const ExponentialMovingAverageOptions& options);

  /// Adds the current weights to the average. Errors: UsageError while it is applied.
  void update();

  /// Gives the model the average and keeps its own weights aside.
  /// Errors: UsageError before the first update(), or if the average is applied already.
  void apply();
  /// Gives the model its own weights back. Does nothing if the average is not applied.
  void restore() noexcept;
  [[nodiscard]] bool applied() const noexcept { return !kept_.empty(); }

  [[nodiscard]] int64_t num_updates() const noexcept { return num_updates_; }
  /// Returns the options in words, for records of a run: "decay=0.999, warmup=num_updates".
  [[nodiscard]] std::string parameters() const;
  /// Returns the averages under the structured names of the model's state dict.
  [[nodiscard]] EmaState state_dict() const;
  /// Copies the state, all or nothing. Errors: CheckpointError that names what is missing,
  /// unexpected, or has another shape or dtype.
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
  [[nodiscard]] at::Tensor average_here(std::size_t i) const;
  void move_average_here(std::size_t i);
  [[nodiscard]] at::Tensor whole_average(std::size_t i) const;

  ExponentialMovingAverageOptions options_;
  engine::NamedTensors own_{};          // the model's, each once
  std::vector<at::Tensor> averages_{};  // beside own_; of a divided tensor this process's part
  std::vector<at::Tensor> divided_{};   // beside it, that tensor, as it was divided then
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
