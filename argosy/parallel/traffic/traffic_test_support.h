#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/hooks.h"
#include "argosy/parallel/ddp/ddp_test_support.h"

// Helpers of this folder's tests.
namespace argosy::parallel::testing {

/// fn(group) on `size` threads that meet over a real transport.
inline void over(const std::string& backend,
                 int size,
                 const std::function<void(comm::Group&)>& fn) {
  const auto store = rendezvous::in_process_store();
  test::run_ranks(size, [&](int rank) {
    comm::Group group = comm::connect({.backend = backend,
                                       .store = store,
                                       .rank = rank,
                                       .size = size,
                                       .timeout = std::chrono::seconds(20)});
    fn(group);
  });
}

/// Counts what this rank sends, for two ranks: each operation sends its own tensor once.
class SentBytes final : public comm::Hook {
 public:
  void on_ended(const comm::OperationEvent& event) override {
    all_ += event.bytes;
    ++operations_;
  }
  [[nodiscard]] int64_t take() {
    operations_ = 0;
    return all_.exchange(0);
  }
  [[nodiscard]] int64_t operations() const { return operations_; }

 private:
  std::atomic<int64_t> all_{0}, operations_{0};
};

/// One f32 matrix and a vector, [out, in].
struct WideImpl : torch::nn::Module {
  explicit WideImpl(int64_t in = 160, int64_t out = 160) {
    layer = register_module("layer", torch::nn::Linear(in, out));
    fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) { return layer(x).tanh(); }
  torch::nn::Linear layer{nullptr};
};
TORCH_MODULE(Wide);

/// A batch that is the rank's and the step's own.
inline at::Tensor batch_of(int rank, int step, int64_t width = 160) {
  return values({6, width}, 10.0 * rank + step, at::kFloat);
}

/// Trains by the square of the outputs, and returns nothing.
template <typename Model>
void train_step(Model& model, optim::Optimizer optimizer, const at::Tensor& batch) {
  model(batch).square().mean().backward();
  optimizer.step();
  optimizer.zero_grad();
}

inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& tensor : tensors) {
    out.push_back(tensor.detach().clone());
  }
  return out;
}

inline void expect_same_bits(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(a[i].equal(b[i])) << i << ": " << (a[i] - b[i]).abs().max().item<double>();
  }
}

/// All ranks hold the same bits.
inline void expect_equal_on_ranks(const std::vector<at::Tensor>& own, const comm::Group& group) {
  for (const at::Tensor& tensor : own) {
    for (const at::Tensor& other : comm::all_gather(tensor.detach().contiguous(), group)) {
      EXPECT_TRUE(other.equal(tensor));
    }
  }
}

}  // namespace argosy::parallel::testing
