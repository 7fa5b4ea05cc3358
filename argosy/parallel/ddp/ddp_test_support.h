#pragma once

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/comm.h"
#include "argosy/parallel/parallel.h"
#include "argosy/rendezvous/store.h"
#include "argosy/transport/in_process.h"

#include "tests/support/run_ranks.h"

// Helpers of this room's tests: ranks as threads, small networks with values that need no seed.
namespace argosy::parallel::testing {

/// ARGOSY_TEST_BACKEND=gloo: over Gloo, where ranks cannot share memory.
inline comm::Group thread_group(const std::shared_ptr<rendezvous::Store>& store,
                                int rank,
                                int size,
                                std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  if (const char* const backend = std::getenv("ARGOSY_TEST_BACKEND"); backend != nullptr) {
    return comm::connect(
        {.backend = backend, .store = store, .rank = rank, .size = size, .timeout = timeout});
  }
  return comm::make_group(
      transport::make_in_process(rendezvous::prefix_store(store, "transport"), rank, size),
      rendezvous::prefix_store(store, "group"),
      {.timeout = timeout, .make_transport = [](const comm::TransportRequest& wanted) {
         return transport::make_in_process(wanted.store, wanted.rank, wanted.size);
       }});
}

/// fn(group) on ranks that meet over `backend`: two threads, or for "hierarchical" four as if on
/// two hosts. Returns how each ended.
inline std::vector<test::RankOutcome> try_ranks_over(
    const std::string& backend,
    const std::function<void(const comm::Group&)>& fn,
    std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
  const bool two_hosts = backend == "hierarchical";
  const int size = two_hosts ? 4 : 2;
  const auto store = rendezvous::in_process_store();
  return test::try_run_ranks(size, [&](int rank) {
    fn(comm::connect({.backend = backend,
                      .hosts = two_hosts ? std::vector{0, 0, 1, 1} : std::vector<int>{},
                      .store = store,
                      .rank = rank,
                      .size = size,
                      .timeout = timeout}));
  });
}

/// fn(group) on `size` threads at once.
inline void on_ranks(int size,
                     const std::function<void(comm::Group&)>& fn,
                     std::chrono::milliseconds timeout = std::chrono::seconds(20),
                     const test::RankOptions& options = {}) {
  auto store = rendezvous::in_process_store();
  test::run_ranks(
      size,
      [&](int rank) {
        comm::Group group = thread_group(store, rank, size, timeout);
        fn(group);
      },
      options);
}

/// Values that depend on `seed` and the element's place only: threads share libtorch's generator.
inline at::Tensor values(at::IntArrayRef sizes, double seed, at::ScalarType type = at::kDouble) {
  int64_t n = 1;
  for (int64_t size : sizes) {
    n *= size;
  }
  return (at::arange(n, at::kDouble) * 0.7 + seed).sin().reshape(sizes).to(type);
}

/// A batch of TwoLayers' inputs that is the rank's own.
inline at::Tensor input_of(int rank) {
  return values({4, 3}, 10.0 + rank);
}

inline void fill(const torch::nn::Module& module, double seed) {
  torch::NoGradGuard no_grad;
  for (auto& parameter : module.parameters()) {
    parameter.copy_(values(parameter.sizes(), seed += 1.3) * 0.3);
  }
}

/// Two layers in f64; layers are registered in the order of use.
struct TwoLayersImpl : torch::nn::Module {
  explicit TwoLayersImpl(double seed = 0, int64_t hidden = 5) {
    first = register_module("first", torch::nn::Linear(3, hidden));
    second = register_module("second", torch::nn::Linear(hidden, 2));
    to(torch::kDouble);
    fill(*this, seed);
  }
  torch::Tensor forward(const torch::Tensor& x) { return second(first(x).tanh()); }
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(TwoLayers);

/// Two heads over one trunk; a head is used only when asked for.
struct TwoHeadsImpl : torch::nn::Module {
  TwoHeadsImpl() {
    trunk = register_module("trunk", torch::nn::Linear(3, 4));
    left = register_module("left", torch::nn::Linear(4, 1));
    right = register_module("right", torch::nn::Linear(4, 1));
    to(torch::kDouble);
    fill(*this, 1);
  }
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x, bool l, bool r) {
    auto h = trunk(x).tanh();
    return {l ? left(h) : h.sum(), r ? right(h) : h.mean()};
  }
  torch::nn::Linear trunk{nullptr}, left{nullptr}, right{nullptr};
};
TORCH_MODULE(TwoHeads);

/// Returns the message of the E that `action` throws. The test fails if it throws none.
template <typename E = UsageError, typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "expected another type of error, got: " << error.what();
    return {};
  }
  ADD_FAILURE() << "expected an error";
  return {};
}

/// The gradients of a plain copy of `module` for this input, times nothing.
template <typename Module, typename... Args>
std::vector<at::Tensor> plain_gradients(Module module, const Args&... input) {
  module->zero_grad();
  module->forward(input...).sum().backward();
  std::vector<at::Tensor> out;
  for (const auto& parameter : module->parameters()) {
    out.push_back(parameter.grad().clone());
  }
  return out;
}

}  // namespace argosy::parallel::testing
