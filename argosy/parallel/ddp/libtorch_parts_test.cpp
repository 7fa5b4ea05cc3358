// What programs of libtorch may keep beside the wrapper: docs/reference/libtorch.md lists it.
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)
using Parameters = std::vector<at::Tensor>;

/// Sample i of a set of twelve: an input and what the network shall give for it.
struct Numbers : torch::data::datasets::Dataset<Numbers> {
  torch::data::Example<> get(size_t i) override {
    return {values({3}, static_cast<double>(i)), values({2}, static_cast<double>(2 * i))};
  }
  [[nodiscard]] torch::optional<size_t> size() const override { return 12; }
};

/// The loss over samples first, first + step, …, twelve in all.
template <typename Model>
at::Tensor loss_over(Model& model, int first, int step) {
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> targets;
  Numbers set;
  for (int i = first; i < 12; i += step) {
    const auto sample = set.get(static_cast<size_t>(i));
    inputs.push_back(sample.data);
    targets.push_back(sample.target);
  }
  return torch::mse_loss(model(torch::stack(inputs)), torch::stack(targets));
}

void expect_close(const Parameters& a, const Parameters& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_LT((a[i] - b[i]).abs().max().item<double>(), 1e-10) << what << ", parameter " << i;
  }
}

/// Trains with one of libtorch's optimizers, on two ranks and alone over all samples.
void expect_same_training(
    const std::string& what,
    const std::function<std::unique_ptr<torch::optim::Optimizer>(const Parameters&)>& make) {
  using LossOfAll = std::function<at::Tensor(at::Tensor)>;
  const auto train = [&](auto& model,
                         const Parameters& parameters,
                         int first,
                         int step,
                         const LossOfAll& loss_of_all) {
    auto optimizer = make(parameters);
    torch::optim::StepLR schedule(*optimizer, 3, 0.5);
    for (int update = 0; update < 6; ++update) {
      optimizer->step([&] {  // which LBFGS calls several times
        optimizer->zero_grad();
        auto loss = loss_over(model, first, step);
        loss.backward();
        if (what != "LBFGS") {
          torch::nn::utils::clip_grad_norm_(parameters, 0.5);
        }
        return loss_of_all(loss.detach());
      });
      schedule.step();
    }
  };
  TwoLayers alone(0.0);
  train(alone, alone->parameters(), 0, 1, [](at::Tensor loss) { return loss; });
  on_ranks(2, [&](comm::Group& group) {
    TwoLayers net(0.0);
    DistributedDataParallel model(net, group);
    train(model, net->parameters(), group.rank(), 2, [&](at::Tensor loss) {
      comm::all_reduce(loss, group, {.op = comm::ReduceOp::kAvg});
      return loss;
    });
    expect_close(net->parameters(), alone->parameters(), what);
  });
}

TEST(LibtorchParts, OptimizersSchedulesAndClipping) {
  namespace o = torch::optim;
  expect_same_training("SGD", [](const Parameters& of) {
    return std::make_unique<o::SGD>(of, o::SGDOptions(0.1).momentum(0.9));
  });
  expect_same_training("Adam", [](const Parameters& of) {
    return std::make_unique<o::Adam>(of, o::AdamOptions(0.01));
  });
  expect_same_training("AdamW", [](const Parameters& of) {
    return std::make_unique<o::AdamW>(of, o::AdamWOptions(0.01));
  });
  expect_same_training("RMSprop", [](const Parameters& of) {
    return std::make_unique<o::RMSprop>(of, o::RMSpropOptions(0.01));
  });
  expect_same_training("Adagrad", [](const Parameters& of) {
    return std::make_unique<o::Adagrad>(of, o::AdagradOptions(0.1));
  });
  expect_same_training("LBFGS", [](const Parameters& of) {
    return std::make_unique<o::LBFGS>(of, o::LBFGSOptions(0.5).max_iter(4));
  });
}

template <typename Sampler>
void expect_each_sample_once() {
  std::mutex mutex;
  std::multiset<double> seen;
  on_ranks(2, [&](comm::Group& group) {
    Sampler sampler(12, group.size(), group.rank(), false);
    sampler.set_epoch(3);
    auto loader = torch::data::make_data_loader(
        Numbers().map(torch::data::transforms::Stack<>()), sampler, 2);
    TwoLayers net(0.0);
    DistributedDataParallel model(net, group);
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      torch::mse_loss(model(batch.data), batch.target).backward();
      optimizer.step();
      const std::lock_guard lock(mutex);
      for (int64_t i = 0; i < batch.data.size(0); ++i) {
        seen.insert(batch.data[i][0].template item<double>());
      }
    }
  });
  std::multiset<double> expected;
  for (size_t i = 0; i < 12; ++i) {
    expected.insert(Numbers().get(i).data[0].item<double>());
  }
  EXPECT_EQ(seen, expected);
}

TEST(LibtorchParts, DataLoaderWithItsDistributedSamplers) {
  expect_each_sample_once<torch::data::samplers::DistributedRandomSampler>();
  expect_each_sample_once<torch::data::samplers::DistributedSequentialSampler>();
}

TEST(LibtorchParts, SavingAndLoadingOfTheModule) {
  on_ranks(2, [&](comm::Group& group) {
    TwoLayers net(1.0);
    DistributedDataParallel model(net, group);
    std::stringstream file;
    torch::save(net, file);
    TwoLayers other(2.0);
    torch::load(other, file);
    expect_close(other->parameters(), net->parameters(), "torch::load");
  });
}

}  // namespace
}  // namespace argosy::parallel
