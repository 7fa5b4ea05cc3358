#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

namespace argosy::bench {

/// Numbers in [-1, 1] that peers/workload.py makes too, bit for bit: element i is
/// ((7919 i² + 104729 i + 1299709 seed) mod 2003) / 1001 - 1. Both sides therefore train the same
/// model from the same weights on the same data, and compare.py holds their losses together.
/// On other devices than the CPU they are the same but for rounding.
at::Tensor pattern(at::IntArrayRef sizes, int64_t seed, at::Device device = at::kCPU);

/// Weights from pattern(), scaled by 1/√fan-in; biases zero; batch norm's weights stay 1.
void fill_weights(torch::nn::Module& module);

/// A batch of 28×28 images that can be learnt: a pattern of its own plus one per class.
struct Batch {
  at::Tensor images;  ///< f32 [n, 1, 28, 28]
  at::Tensor labels;  ///< i64 [n]
};
Batch image_batch(int64_t n, int64_t seed);
/// The same in color: f32 [n, 3, side, side].
Batch color_batch(int64_t n, int64_t side, int64_t seed, at::Device device = at::kCPU);
/// The same: f32 [n, channels, side, side].
Batch image_batch_of(
    int64_t n, int64_t channels, int64_t side, int64_t seed, at::Device device = at::kCPU);

/// Parameters with the sizes of ResNet-18's: 62 tensors, 11,689,512 elements. The forward pass is a
/// dot product per tensor, so that what costs is what DDP and the optimizer do with gradients.
/// loss() = (Σ wᵢ·rᵢ/√nᵢ / target - 1)²; the rᵢ differ from rank to rank.
class ResNet18SizedImpl : public torch::nn::Module {
 public:
  explicit ResNet18SizedImpl(int rank);
  at::Tensor forward();

 private:
  std::vector<at::Tensor> weights_;
  std::vector<at::Tensor> coefficients_;
};
TORCH_MODULE(ResNet18Sized);

/// What compare.py reads: one line {"bench": …} on standard output.
class Report {
 public:
  explicit Report(const std::string& bench);
  void number(const std::string& key, double value);
  void text(const std::string& key, const std::string& value);
  void numbers(const std::string& key, const std::vector<double>& values);
  void print() const;

 private:
  void field(const std::string& key, const std::string& json);
  std::string json_;
};

/// Versions of libtorch, its matrix library and its CPU kernels, and the threads of an operator.
void add_versions(Report& report);

/// This process's memory in MB (10^6 bytes); what is shared counts in equal parts for each that
/// shares it (PSS).
[[nodiscard]] double pss_mb();

/// What this host, or network namespace, has sent over its links but for the loopback, in MB.
[[nodiscard]] double sent_mb();
/// The same without files, such as libraries, whose part depends on what else runs.
[[nodiscard]] double pss_of_data_mb();

/// Milliseconds since it was made.
class Stopwatch {
 public:
  [[nodiscard]] double ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace argosy::bench
