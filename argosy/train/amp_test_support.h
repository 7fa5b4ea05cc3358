#pragma once

#include <vector>

#include "argosy/engine/autocast.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/optim/optimizer.h"
#include "argosy/train/train_test_support.h"

namespace argosy::train::testing {

constexpr double kLoud = 1024;          // of the inputs, for large gradients
constexpr double kHighScale = 0x1p120;  // which overflow now and then with it
constexpr int64_t kInterval = 3;        // updates until it doubles
inline const optim::GradScalerOptions kHigh{.init_scale = kHighScale, .growth_interval = kInterval};

inline data::TensorDataset<2> loud_blobs(int64_t samples) {
  const auto quiet = blobs(samples);
  std::vector<at::Tensor> xs;
  std::vector<at::Tensor> ys;
  for (int64_t i = 0; i < samples; ++i) {
    auto [x, y] = quiet.get(i);
    xs.push_back(x * kLoud);
    ys.push_back(y);
  }
  return data::TensorDataset<2>(torch::stack(xs), torch::stack(ys));
}

inline std::vector<at::Tensor> weights_of(const SmallNet& net) {
  std::vector<at::Tensor> all;
  for (const auto& [name, parameter] : engine::named_parameters(net)) {
    all.push_back(parameter.detach().clone());
  }
  return all;
}

inline void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(torch::equal(a[i], b[i])) << "tensor " << i;
  }
}

inline int64_t adam_steps(const optim::Optimizer& optimizer) {
  const optim::OptimizerState state = optimizer.state_dict();
  const engine::StateDict* first = state.find("first.weight");
  return first == nullptr ? 0 : first->find("step")->item<int64_t>();
}

/// A holder's forward is not const.
inline torch::Tensor run_net(SmallNet net,
                             const at::Tensor& x) {  // NOLINT(performance-unnecessary-value-param)
  return net->forward(x);
}

inline torch::Tensor loss_in_bfloat16(const SmallNet& net,
                                      const at::Tensor& x,
                                      const at::Tensor& y) {
  torch::Tensor out;
  {
    const engine::Autocast autocast;
    out = run_net(net, x);
  }
  return torch::nn::functional::cross_entropy(out.to(torch::kFloat), y);
}

}  // namespace argosy::train::testing
