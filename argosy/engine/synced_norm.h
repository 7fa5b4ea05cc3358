#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

namespace argosy::engine {

/// The processes that compute a norm over their batches together.
/// parallel::convert_sync_batchnorm() makes it.
///
/// Both operations are collective: every process runs the same norms in the same order.
class NormPeers : public torch::CustomClassHolder {
 public:
  /// Gathers f64 [n] of each process, on any device, into f64 [processes, n], in the order of
  /// ranks.
  [[nodiscard]] virtual at::Tensor gather(const at::Tensor& mine) = 0;
  /// Sums f64 values over the processes, in place, with the same bits on each.
  virtual void sum(const at::Tensor& values) = 0;
};
using NormPeersPtr = c10::intrusive_ptr<NormPeers>;

/// Mean and variance of each channel of a batch.
struct ChannelMoments {
  std::vector<double> mean{};
  std::vector<double> variance{};  ///< biased
  double count = 0;                ///< values per channel
};

/// Returns the moments of all processes' batches, with the same bits on every process. A process
/// without samples has count 0.
/// Errors: UsageError if there is only one value per channel in all, as in libtorch's norm.
[[nodiscard]] ChannelMoments merge(const ChannelMoments& mine, NormPeers& peers);

/// The parts of a norm, as references into it.
struct NormState {
  const torch::nn::BatchNormOptions& options;
  const at::Tensor& weight;  ///< weight and bias are undefined if the norm has none
  const at::Tensor& bias;
  const at::Tensor& running_mean;
  const at::Tensor& running_var;
  const at::Tensor& num_batches_tracked;
  bool training = false;
  NormPeersPtr peers{};  ///< null: none
};

/// Moves the running statistics towards these moments, as torch::nn::BatchNorm does.
void move_running_statistics(const NormState& norm, const ChannelMoments& moments);

/// Normalizes images. Without peers, and in evaluation mode, it is libtorch's batch norm.
///
/// With peers, a training step uses the statistics of all processes' batches; N may be 0 and may
/// differ between processes.
/// Shape: [N, C, …] → the same. Any device, which nobody waits for unless a batch has at most one
/// value per channel, or `momentum` is empty; 16-bit types are summed in f32.
/// Autograd: weight and bias get the gradients of this process's batch; DistributedDataParallel
/// averages them. A second derivative is a UsageError.
[[nodiscard]] at::Tensor batch_norm(const NormState& norm, const at::Tensor& images);

/// Base of all norms that can compute statistics over processes.
class SyncedNorm {
 public:
  virtual ~SyncedNorm() = default;
  /// Sets the peers. With null, the initial value, each process normalizes alone.
  /// It is const because a const module holder of libtorch gives access to a module that may
  /// change.
  void set_peers(NormPeersPtr peers) const { peers_ = std::move(peers); }
  [[nodiscard]] const NormPeersPtr& peers() const { return peers_; }

 protected:
  SyncedNorm() = default;
  SyncedNorm(const SyncedNorm& /*other*/) {}  // a copy belongs to nobody's group
  SyncedNorm& operator=(const SyncedNorm& /*other*/) { return *this; }

  static void check_dims(size_t dims, const at::Tensor& images);
  static void print(std::ostream& stream, size_t dims, const torch::nn::BatchNormOptions& options);

 private:
  mutable NormPeersPtr peers_{};
};

namespace detail {

template <size_t D, typename Derived>
class BatchNormBase : public torch::nn::NormImplBase<D, Derived, torch::nn::BatchNormOptions>,
                      public SyncedNorm {
  using Base = torch::nn::NormImplBase<D, Derived, torch::nn::BatchNormOptions>;

 public:
  explicit BatchNormBase(int64_t channels) : Base(torch::nn::BatchNormOptions(channels)) {}
  explicit BatchNormBase(const torch::nn::BatchNormOptions& options) : Base(options) {}

  at::Tensor forward(const at::Tensor& images) {
    _check_input_dim(images);
    return batch_norm(this->state(), images);
  }
  [[nodiscard]] NormState state() const {
    return {.options = this->options,
            .weight = this->weight,
            .bias = this->bias,
            .running_mean = this->running_mean,
            .running_var = this->running_var,
            .num_batches_tracked = this->num_batches_tracked,
            .training = this->is_training(),
            .peers = peers()};
  }
  void pretty_print(std::ostream& stream) const override { print(stream, D, this->options); }

 protected:
  void _check_input_dim(const at::Tensor& images) override { check_dims(D, images); }
};

}  // namespace detail

/// torch::nn::BatchNorm1d, 2d and 3d, bit for bit, which can also compute statistics over several
/// processes. Parameters, buffers and their names are the same. A clone has no peers.
class BatchNorm1dImpl final : public detail::BatchNormBase<1, BatchNorm1dImpl> {
 public:
  using BatchNormBase::BatchNormBase;
};
class BatchNorm2dImpl final : public detail::BatchNormBase<2, BatchNorm2dImpl> {
 public:
  using BatchNormBase::BatchNormBase;
};
class BatchNorm3dImpl final : public detail::BatchNormBase<3, BatchNorm3dImpl> {
 public:
  using BatchNormBase::BatchNormBase;
};
TORCH_MODULE(BatchNorm1d);
TORCH_MODULE(BatchNorm2d);
TORCH_MODULE(BatchNorm3d);

}  // namespace argosy::engine
