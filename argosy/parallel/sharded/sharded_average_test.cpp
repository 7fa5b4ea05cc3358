/// An average of a model's weights, while the ranks that divide it divide it in other ways.
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/engine/layout.h"
#include "argosy/parallel/sharded/fully_shard_test_support.h"
#include "argosy/parallel/sharded/memory_pool.h"

namespace argosy::parallel {
namespace {

using testing::expect_same_bits;
using testing::on_ranks;
using testing::small_units;
using testing::values;

/// A convolution whose weight lies in another order in channels_last, of which each rank has a
/// part.
struct ImagesImpl : torch::nn::Module {
  ImagesImpl() {
    conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 24, 3)));
    head = register_module("head", torch::nn::Linear(24, 2));
    testing::fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(conv(x).mean({2, 3})); }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Images);
using ImagesWrapper = DistributedDataParallel<Images>;

optim::ExponentialMovingAverage average_of(const auto& model) {
  return optim::ExponentialMovingAverage(model, {.decay = 0.5});
}

/// A model and its average, which many ranks have, beside those of one.
struct Averages {
  explicit Averages(const comm::Group& ranks) : group(ranks) { wrap({.shard = small_units()}); }
  /// In a loop of one's own: the average stays.
  void wrap(const DdpOptions& options) {
    wrapper.reset();
    wrapper.emplace(net, group, options);
    average = average == nullptr
                  ? std::make_unique<optim::ExponentialMovingAverage>(average_of(*wrapper))
                  : std::move(average);
  }
  void train(int step) {
    const torch::NoGradGuard no_grad;
    for (const Images& each : {net, plain}) {
      for (const at::Tensor& parameter : each->parameters()) {
        parameter.add_(values(parameter.sizes(), step, at::kFloat));
      }
    }
  }
  void update() {
    average->update();
    expected.update();
  }
  void compare(const std::string& what) {
    const engine::StateDict want = expected.state_dict().averages;
    for (const auto& [name, tensor] : average->state_dict().averages) {
      expect_same_bits(tensor, want.at(name), what + ", average of " + name);
    }
    const optim::Averaged applied(*average);
    const optim::Averaged applied_too(expected);
    for (const auto& item : plain->named_parameters()) {
      expect_same_bits(net->named_parameters()[item.key()], item.value(), what + item.key());
    }
  }
  comm::Group group;
  Images net, plain;
  std::optional<ImagesWrapper> wrapper{};
  std::unique_ptr<optim::ExponentialMovingAverage> average{};
  optim::ExponentialMovingAverage expected = average_of(plain);
};

TEST(ShardedAverage, FollowsAModelThatIsDividedInAnotherWay) {
  using engine::MemoryFormat;
  const std::vector<DdpOptions> ways{
      {.memory_format = MemoryFormat::kChannelsLast, .shard = small_units()},
      {.memory_format = MemoryFormat::kContiguous, .shard = ShardOptions()},
      {.shared_memory = false, .memory_format = MemoryFormat::kChannelsLast},
      {.memory_format = MemoryFormat::kChannelsLast, .shard = small_units()},
      {.shared_memory = false, .memory_format = MemoryFormat::kContiguous}};
  for (const int size : {2, 3}) {
    on_ranks(size, [&](comm::Group& group) {
      Averages both(group);
      both.train(0);
      both.update();
      for (size_t i = 0; i < ways.size(); ++i) {
        both.wrap(ways[i]);
        if (i % 2 == 1) {
          both.compare("wrapped again " + std::to_string(i));
        }
        both.train(static_cast<int>(i) + 1);
        both.update();
        both.compare("way " + std::to_string(i));
      }
    });
  }
}

/// What a program asks of the format without wrapping again.
TEST(ShardedAverage, KeepsItsOrderWhereTheFormatIsDecidedLater) {
  on_ranks(2, [&](comm::Group& group) {
    Averages both(group);
    both.train(0);
    both.update();
    engine::to_channels_last(both.net);
    both.wrapper->decide_memory_format(engine::MemoryFormat::kChannelsLast);
    both.train(1);
    both.update();
    both.compare("decided");
  });
}

/// What a rank puts back asks nobody, so that it can while it unwinds.
TEST(ShardedAverage, IsPutBackWhereAnotherRankIsGone) {
  const auto outcomes = testing::try_ranks_over(
      "shm",
      [](const comm::Group& group) {
        Averages both(group);
        both.train(0);
        both.update();
        {
          const optim::Averaged applied(*both.average);
          (void)both.net->head->weight.sum();
          if (group.rank() == 1) {
            throw DataError("test", "gone");
          }
        }
        EXPECT_TRUE(at::isnan(both.net->head->weight.sum()).item<bool>());
        EXPECT_THROW((void)(*both.wrapper)(at::ones({1, 8, 3, 3})), CommError);
      },
      std::chrono::milliseconds(1500));
  EXPECT_EQ(outcomes[0].error, "");
}

}  // namespace
}  // namespace argosy::parallel
