// Parameters that are frozen after the model was wrapped, and unfrozen again, as GANs do.
#include <gmock/gmock.h>

#include "argosy/base/error.h"
#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

void freeze(const torch::nn::Module& module, bool yes) {
  for (const at::Tensor& parameter : module.parameters()) {
    parameter.requires_grad_(!yes);
  }
}

void drop_gradients(const torch::nn::Module& module) {
  for (at::Tensor& parameter : module.parameters()) {
    parameter.mutable_grad() = at::Tensor();
  }
}

/// What two ranks average, from two passes of plain copies.
std::vector<at::Tensor> averages() {
  std::vector<at::Tensor> mean = plain_gradients(TwoLayers(0.0), input_of(0));
  const std::vector<at::Tensor> other = plain_gradients(TwoLayers(0.0), input_of(1));
  for (size_t i = 0; i < mean.size(); ++i) {
    mean[i] = (mean[i] + other[i]) / 2;
  }
  return mean;
}

TEST(DdpFreezing, AWholeModelIsPassedThroughAndLearnsAgain) {
  on_ranks(2, [](comm::Group& group) {
    for (const bool find_unused : {false, true}) {
      DistributedDataParallel model(TwoLayers(0.0), group, {.find_unused_parameters = find_unused});
      const auto expected = averages();
      for (int turn = 0; turn < 3; ++turn) {
        freeze(*model.module(), true);  // the generator's turn
        const at::Tensor x = input_of(group.rank()).requires_grad_();
        model(x).sum().backward();
        TwoLayers plain(0.0);
        const at::Tensor y = input_of(group.rank()).requires_grad_();
        plain(y).sum().backward();
        EXPECT_TRUE(at::allclose(x.grad(), y.grad()));
        freeze(*model.module(), false);
        drop_gradients(*model.module());
        model(input_of(group.rank())).sum().backward();
        for (size_t i = 0; i < expected.size(); ++i) {
          EXPECT_TRUE(at::allclose(model.parameters()[i].grad(), expected[i])) << i;
        }
      }
      EXPECT_EQ(model.stats().reduced_passes, 3);
    }
  });
}

/// A GAN's discriminator whose steps the ranks divide: the bits of one that is not divided.
TEST(DdpFreezing, GoesTogetherWithDividedSteps) {
  on_ranks(2, [](comm::Group& group) {
    const auto trained = [&](std::optional<DivideOptions> divide) {
      DistributedDataParallel model(TwoLayers(0.0), group);
      optim::Adam optimizer(model, {.lr = 0.02});
      EXPECT_TRUE(!divide || model.divide_step(optimizer, *divide));
      for (int turn = 0; turn < 3; ++turn) {
        freeze(*model.module(), true);  // the generator's turn
        model(input_of(group.rank()).requires_grad_()).sum().backward();
        freeze(*model.module(), false);
        optimizer.zero_grad();
        model(input_of(group.rank())).sum().backward();
        optimizer.step();
      }
      std::vector<at::Tensor> weights;
      for (const at::Tensor& parameter : model.parameters()) {
        weights.push_back(parameter.detach().clone());
      }
      return weights;
    };
    const auto whole = trained(std::nullopt);
    for (const bool share : {false, true}) {
      const auto divided = trained(DivideOptions{.share_parameters = share});
      for (size_t i = 0; i < whole.size(); ++i) {
        EXPECT_TRUE(divided[i].equal(whole[i])) << i << (share ? ", shared" : "");
      }
    }
  });
}

TEST(DdpFreezing, APartKeepsItsGradientsWhileTheRestIsAveraged) {
  on_ranks(2, [](comm::Group& group) {
    for (const int64_t cap : {1, 1 << 20}) {
      DistributedDataParallel model(
          TwoLayers(0.0), group, {.first_bucket_bytes = cap, .bucket_cap_bytes = cap});
      const auto expected = averages();
      model(input_of(group.rank())).sum().backward();
      freeze(*model->first, true);
      const at::Tensor kept = model->first->weight.grad().clone();
      model(input_of(group.rank())).sum().backward();
      EXPECT_TRUE(model->first->weight.grad().equal(kept));
      EXPECT_TRUE(at::allclose(model->second->weight.grad(), expected[2] * 2));
      EXPECT_THAT(model.stats().unused, ::testing::IsEmpty());
      freeze(*model->first, false);
      drop_gradients(*model.module());
      model(input_of(group.rank())).sum().backward();
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(at::allclose(model.parameters()[i].grad(), expected[i])) << i;
      }
    }
  });
}

TEST(DdpFreezing, ARankThatAloneFreezesIsNamed) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    comm::Group group = thread_group(store, rank, 2);
    DistributedDataParallel model(TwoLayers(0.0), group);
    optim::SGD optimizer(model, {.lr = 0.1});
    for (int update = 0; update < 4; ++update) {
      freeze(*model->first, rank == 1 && update == 2);
      model(input_of(rank)).sum().backward();
      optimizer.step();
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, HasSubstr("has frozen other parameters")) << describe(outcome);
  }
}

}  // namespace
}  // namespace argosy::parallel
