// Communication hooks, and ranks with unequally many batches.
#include <gmock/gmock.h>

#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

TEST(DdpHook, CompressionStaysWithinItsBound) {
  on_ranks(2, [](comm::Group& group) {
    for (bool half : {true, false}) {
      DistributedDataParallel exact(TwoLayers(0.0), group);
      DistributedDataParallel packed(TwoLayers(0.0), group);
      packed.register_comm_hook(half ? fp16_compress() : bf16_compress(), half ? "fp16" : "bf16");
      EXPECT_EQ(packed.stats().comm_hook, half ? "fp16" : "bf16");
      double worst = 0;
      for (int step = 0; step < 2; ++step) {
        exact(input_of(group.rank())).sum().backward();
        packed(input_of(group.rank())).sum().backward();
      }
      for (size_t k = 0; k < exact.parameters().size(); ++k) {
        const auto& a = exact.parameters()[k].grad();
        const auto& b = packed.parameters()[k].grad();
        worst = std::max(worst, ((a - b).abs().max() / a.abs().max()).item<double>());
      }
      // Rounded before and after the sum, in each of two passes.
      EXPECT_LT(worst, half ? 4.0 / 1024 : 4.0 / 128);
      EXPECT_GT(worst, 1e-12) << "nothing was compressed";
    }
  });
}

TEST(DdpHook, OfTheUsersOwn) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    EXPECT_THAT(error_of([&] { model.register_comm_hook({}); }), HasSubstr("the hook is empty"));
    model.register_comm_hook([](GradBucket& bucket) -> BucketWork {
      EXPECT_EQ(bucket.gradients().size(), bucket.parameters().size());
      return comm::all_reduce_async(bucket.buffer(), bucket.group(), {.op = comm::ReduceOp::kMax});
    });
    EXPECT_THAT(error_of([&] { model.register_comm_hook(average()); }),
                HasSubstr("once only; \"custom\" is registered"));
    model(input_of(group.rank())).sum().backward();
    const auto a = plain_gradients(TwoLayers(0.0), input_of(0));
    const auto b = plain_gradients(TwoLayers(0.0), input_of(1));
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), at::maximum(a[k], b[k])));
    }
  });
}

struct JoinCase {
  bool divide_by_initial = true;
  bool hook = false;
  bool find_unused = false;
  std::vector<int> batches{};
};

/// The same training in one thread: sums of the gradients of those that have a batch.
TwoLayers trained_alone(const JoinCase& c) {
  TwoLayers net(0.0);
  torch::NoGradGuard no_grad;
  const int steps = *std::max_element(c.batches.begin(), c.batches.end());
  for (int step = 0; step < steps; ++step) {
    std::vector<at::Tensor> sum;
    int active = 0;
    for (size_t rank = 0; rank < c.batches.size(); ++rank) {
      if (step < c.batches[rank]) {
        torch::AutoGradMode on(true);
        auto g = plain_gradients(net, input_of(static_cast<int>(rank) + 10 * step));
        for (size_t k = 0; k < g.size(); ++k) {
          active == 0 ? sum.push_back(g[k]) : void(sum[k] += g[k]);
        }
        ++active;
      }
    }
    const double n = c.divide_by_initial ? static_cast<double>(c.batches.size()) : active;
    for (size_t k = 0; k < sum.size(); ++k) {
      net->parameters()[k] -= 0.05 * sum[k] / n;
    }
  }
  return net;
}

/// Life goes on, without announcements: gradients are averages over all ranks again.
void check_a_step_after_join(DistributedDataParallel<TwoLayers>& model) {
  const int ranks = model.group().size();
  std::vector<std::vector<at::Tensor>> of_ranks;
  TwoLayers copy(0.0);
  for (size_t k = 0; k < copy->parameters().size(); ++k) {
    copy->parameters()[k].data().copy_(model.parameters()[k].data());
    model.parameters()[k].mutable_grad() = at::Tensor();
  }
  for (int rank = 0; rank < ranks; ++rank) {
    of_ranks.push_back(plain_gradients(copy, input_of(rank)));
  }
  model(input_of(model.group().rank())).sum().backward();
  for (size_t k = 0; k < copy->parameters().size(); ++k) {
    at::Tensor mean = at::zeros_like(of_ranks[0][k]);
    for (const auto& gradients : of_ranks) {
      mean += gradients[k] / ranks;
    }
    EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), mean, 1e-12, 1e-14)) << k;
  }
}

void check_join(const JoinCase& c) {
  on_ranks(static_cast<int>(c.batches.size()), [&](comm::Group& group) {
    DistributedDataParallel model(
        TwoLayers(group.rank() * 3.0),
        group,
        {.first_bucket_bytes = 1, .bucket_cap_bytes = 1, .find_unused_parameters = c.find_unused});
    if (c.hook) {
      model.register_comm_hook(average());
    }
    auto join = model.join({.divide_by_initial_world_size = c.divide_by_initial});
    for (int step = 0; step < c.batches[static_cast<size_t>(group.rank())]; ++step) {
      model(input_of(group.rank() + 10 * step)).sum().backward();
      torch::NoGradGuard no_grad;
      for (auto& parameter : model.parameters()) {
        parameter -= 0.05 * parameter.grad();
        parameter.mutable_grad().zero_();
      }
    }
    join.finish();
    join.finish();
    const TwoLayers expected = trained_alone(c);
    for (size_t k = 0; k < expected->parameters().size(); ++k) {
      EXPECT_TRUE(at::allclose(model.parameters()[k], expected->parameters()[k], 1e-12, 1e-14))
          << "rank " << group.rank() << " parameter " << k;
    }
    check_a_step_after_join(model);
  });
}

TEST(DdpJoin, RanksWithFewerBatchesShadowTheOthers) {
  for (bool initial : {true, false}) {
    for (bool hook : {false, true}) {
      check_join({.divide_by_initial = initial, .hook = hook, .batches = {3, 5, 0}});
    }
    check_join({.divide_by_initial = initial, .find_unused = true, .batches = {0, 2, 4}});
  }
  check_join({.batches = {0, 0}});
  check_join({.batches = {0, 3}});  // rank 0, whose order the buckets follow, never ran backward
  check_join({.batches = {2, 2, 2}});
}

/// 16-bit gradients whose sum would overflow, while their average is exact.
TEST(DdpJoin, DividingByTheRanksThatAreLeftKeepsTheRangeOfHalf) {
  struct ScaleImpl : torch::nn::Module {
    ScaleImpl() { weight = register_parameter("weight", at::ones({3}, at::kHalf)); }
    at::Tensor forward(const at::Tensor& x) { return (weight.to(at::kFloat) * x).sum(); }
    at::Tensor weight;
  };
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(std::make_shared<ScaleImpl>(), group);
    auto join = model.join({.divide_by_initial_world_size = false});
    for (int step = 0; step < (group.rank() == 0 ? 2 : 1); ++step) {
      model->weight.mutable_grad() = at::Tensor();
      model(at::full({3}, 60000.0, at::kFloat)).backward();
      EXPECT_TRUE(model->weight.grad().equal(at::full({3}, 60000.0, at::kHalf)))
          << "step " << step << ": " << model->weight.grad();
    }
    join.finish();
  });
}

TEST(DdpJoin, BuffersComeFromARankThatHasInput) {
  struct CountImpl : torch::nn::Module {
    CountImpl() {
      weight = register_parameter("weight", at::ones({2}, at::kDouble));
      steps = register_buffer("steps", at::zeros({1}));
    }
    at::Tensor forward(const at::Tensor& x) {
      steps += 1;
      return (weight * x).sum();
    }
    at::Tensor weight, steps;
  };
  on_ranks(3, [](comm::Group& group) {
    DistributedDataParallel model(std::make_shared<CountImpl>(), group);
    const int batches = std::vector<int>{1, 4, 4}[static_cast<size_t>(group.rank())];
    {
      auto join = model.join();
      EXPECT_THAT(error_of([&] { auto second = model.join(); }), HasSubstr("under way already"));
      for (int step = 0; step < batches; ++step) {
        auto sync =
            step % 2 == 0 ? std::optional<NoSync>(model.no_sync()) : std::optional<NoSync>();
        model(at::ones({2}, at::kDouble)).backward();
      }
    }
    EXPECT_EQ(model->steps.item<float>(), 4);
  });
}

TEST(DdpJoin, AnExceptionInsideDoesNotWaitForTheOthers) {
  auto store = rendezvous::in_process_store();
  test::run_ranks(2, [&](int rank) {
    comm::Group group = thread_group(store, rank, 2, std::chrono::milliseconds(400));
    DistributedDataParallel model(TwoLayers(0.0), group);
    if (rank == 1) {
      EXPECT_THROW(
          {
            auto join = model.join();
            throw std::range_error("the user's own");
          },
          std::range_error);
      return;
    }
    auto join = model.join();
    EXPECT_THROW(join.finish(), CommError);
  });
}

}  // namespace
}  // namespace argosy::parallel
