// find_unused_parameters: who counts as unused, and what happens to its gradient.
#include <gmock/gmock.h>

#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::ElementsAre;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

const at::Tensor& input() {
  static const at::Tensor x = values({4, 3}, 1);
  return x;
}

DdpOptions options(int64_t cap) {
  return {.first_bucket_bytes = cap, .bucket_cap_bytes = cap, .find_unused_parameters = true};
}

at::Tensor loss_of(const std::tuple<at::Tensor, at::Tensor>& outputs) {
  return std::get<0>(outputs).sum() + std::get<1>(outputs).sum();
}

std::vector<at::Tensor> plain(bool l, bool r) {
  TwoHeads net;
  loss_of(net->forward(input(), l, r)).backward();
  std::vector<at::Tensor> out;
  for (auto& parameter : net->parameters()) {
    out.push_back(parameter.grad().defined() ? parameter.grad() : at::zeros_like(parameter));
  }
  return out;
}

TEST(DdpUnused, CountsAsZeroWhereAnotherRankUsesIt) {
  for (int64_t cap : {1, 1 << 20}) {
    on_ranks(2, [&](comm::Group& group) {
      DistributedDataParallel model(TwoHeads(), group, options(cap));
      const bool left = group.rank() == 0;
      const auto a = plain(true, false);
      const auto b = plain(false, true);
      for (int step = 1; step <= 3; ++step) {
        loss_of(model(input(), left, !left)).backward();
        for (size_t k = 0; k < a.size(); ++k) {
          EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), (a[k] + b[k]) / 2 * step)) << k;
        }
        EXPECT_THAT(model.stats().unused,
                    left ? ElementsAre("right.weight", "right.bias")
                         : ElementsAre("left.weight", "left.bias"));
      }
      EXPECT_FALSE(model.stats().rebuilt);
    });
  }
}

TEST(DdpUnused, StaysUntouchedWhereNoRankUsesIt) {
  on_ranks(3, [](comm::Group& group) {
    DistributedDataParallel model(TwoHeads(), group, options(1 << 20));
    loss_of(model(input(), true, false)).backward();
    EXPECT_FALSE(model->right->weight.grad().defined()) << "undefined stays undefined";
    loss_of(model(input(), true, true)).backward();
    // Values whose average of three rounds differently; and a tensor of the user's own.
    model->right->weight.mutable_grad().fill_(0.1);
    const at::Tensor own = at::full_like(model->right->bias, 0.7);
    model->right->bias.mutable_grad() = own;
    const at::Tensor before = model->right->weight.grad().clone();
    loss_of(model(input(), true, false)).backward();
    EXPECT_TRUE(model->right->weight.grad().equal(before));
    EXPECT_TRUE(model->right->bias.grad().is_same(own));
  });
}

TEST(DdpUnused, BackwardThroughPartOfTheOutputs) {
  // Reachable from the outputs, but not from this loss: known only at the end of backward.
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoHeads(), group, options(1));
    auto outputs = model(input(), true, true);
    std::get<0>(outputs).sum().backward({}, true);
    EXPECT_FALSE(model->right->weight.grad().defined());
    std::get<1>(outputs).sum().backward();
    const auto expected = plain(true, true);
    for (size_t k = 0; k < expected.size(); ++k) {
      EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), expected[k])) << k;
    }
  });
}

TEST(DdpUnused, UsesGatheredUnderNoSyncCount) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoHeads(), group, options(1));
    {
      auto local = model.no_sync();
      loss_of(model(input(), true, false)).backward();
    }
    loss_of(model(input(), false, true)).backward();
    const auto a = plain(true, false);
    const auto b = plain(false, true);
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), a[k] + b[k])) << k;
    }
  });
}

TEST(DdpUnused, IsKnownAtTheStartOfAPassAgainAfterNoSync) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoHeads(), group, options(1));
    {
      auto local = model.no_sync();
      loss_of(model(input(), true, true)).backward();
    }
    for (int step = 0; step < 2; ++step) {
      loss_of(model(input(), true, false)).backward();
    }
    // The first bucket holds what no output of the last forward reaches: it waits for nothing.
    const DdpStats stats = model.stats();
    EXPECT_THAT(stats.buckets[0].parameters, ElementsAre("right.bias"));
    EXPECT_LT(stats.buckets[0].ready_at_start, stats.parameters);
  });
}

TEST(DdpUnused, TwoForwardsThatUseDifferentParts) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoHeads(), group, options(1));
    auto first = loss_of(model(input(), true, false));
    auto second = loss_of(model(input(), false, true));
    (first + second).backward();
    const auto a = plain(true, false);
    const auto b = plain(false, true);
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), a[k] + b[k])) << k;
    }
    // And in turn, each with a backward of its own, the older one last.
    auto third = loss_of(model(input(), true, false));
    auto fourth = loss_of(model(input(), false, true));
    fourth.backward();
    third.backward();
    for (size_t k = 0; k < a.size(); ++k) {
      EXPECT_TRUE(at::allclose(model.parameters()[k].grad(), 2 * (a[k] + b[k]))) << k;
    }
  });
}

}  // namespace
}  // namespace argosy::parallel
