// N ranks report exactly what one process reports about the same samples.
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/init.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/evaluate.h"
#include "argosy/metrics/exact_sum.h"
#include "argosy/metrics/mean_loss.h"
#include "argosy/rendezvous/store.h"

#include "tests/support/run_ranks.h"

namespace argosy::metrics {
namespace {

using namespace std::chrono_literals;

void with_group(int ranks, const std::function<void(const comm::Group&)>& body) {
  auto store = rendezvous::in_process_store();
  test::run_ranks(ranks, [&](int rank) {
    comm::Group group = comm::connect(
        {.backend = "in_process", .store = store, .rank = rank, .size = ranks, .timeout = 20s});
    body(group);
    group.destroy();
  });
}

/// Values of wild magnitudes, so that any rounding on the way would show.
std::vector<double> losses(int n) {
  std::mt19937_64 random(11);
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    values.push_back(
        std::ldexp(std::uniform_real_distribution<>(-1, 1)(random), static_cast<int>(i % 90) - 30));
  }
  return values;
}

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, MeanLossHasTheBitsOfOneProcess) {
  const std::vector<double> values = losses(101);
  MeanLoss alone;
  for (size_t i = 0; i < values.size(); ++i) {
    alone.update(values[i], static_cast<int64_t>(i % 5));
  }
  with_group(GetParam(), [&](const comm::Group& group) {
    MeanLoss part;
    for (size_t i = group.rank(); i < values.size(); i += group.size()) {
      part.update(values[i], static_cast<int64_t>(i % 5));
    }
    EXPECT_EQ(part.compute(group), alone.compute());
    EXPECT_EQ(part.count(group), alone.count());
    EXPECT_EQ(part.compute(group), alone.compute()) << "compute() must not change the metric";
  });
}

TEST_P(Ranks, MeanLossOfRanksWithoutSamples) {
  with_group(GetParam(), [&](const comm::Group& group) {
    MeanLoss loss;
    EXPECT_TRUE(std::isnan(loss.compute(group)));
    if (group.rank() == group.size() - 1) {
      loss.update(2.5, 4);
    }
    EXPECT_EQ(loss.compute(group), 2.5);
    if (group.rank() == 0) {
      loss.update(std::nan(""), 1);
    }
    EXPECT_TRUE(std::isnan(loss.compute(group)));
  });
}

TEST_P(Ranks, InfinitiesOfDifferentRanksMeet) {
  with_group(GetParam(), [&](const comm::Group& group) {
    ExactSum sum;
    sum.add(group.rank() == 0 ? HUGE_VAL : 1.0);
    EXPECT_EQ(sum.all_reduced(group).value(), HUGE_VAL);
    sum.add(group.rank() == group.size() - 1 ? -HUGE_VAL : 1.0);
    EXPECT_TRUE(std::isnan(sum.all_reduced(group).value()));
  });
}

TEST_P(Ranks, AccuracyHasTheBitsOfOneProcess) {
  torch::manual_seed(5);
  const at::Tensor logits = torch::randn({103, 7});
  const at::Tensor labels = torch::randint(0, 7, {103}, torch::kLong);
  Accuracy alone({.topk = {1, 3}});
  alone.update(logits, labels);
  with_group(GetParam(), [&](const comm::Group& group) {
    Accuracy part({.topk = {1, 3}});
    const auto step = static_cast<int64_t>(group.size());
    part.update(logits.slice(0, group.rank(), {}, step), labels.slice(0, group.rank(), {}, step));
    EXPECT_EQ(part.values(group), alone.values());
    EXPECT_EQ(part.compute(group), alone.compute());
    EXPECT_EQ(part.count(group), 103);
  });
}

TEST_P(Ranks, EvaluateWithUnevenBatchesAndAnEmptyRank) {
  with_group(GetParam(), [&](const comm::Group& group) {
    // Rank r has r batches of r samples, of which one each is right: rank 0 has none at all.
    const int64_t r = group.rank();
    std::vector<std::pair<at::Tensor, at::Tensor>> batches;
    for (int64_t i = 0; i < r; ++i) {
      at::Tensor labels = torch::ones({r}, torch::kLong);
      labels[0] = 0;
      batches.emplace_back(torch::tensor({{1.0, 0.0}}).expand({r, 2}), labels);
    }
    int64_t samples = 0;
    int64_t right = 0;
    for (int64_t rank = 0; rank < group.size(); ++rank) {
      samples += rank * rank;
      right += rank;
    }
    torch::nn::Sequential model(torch::nn::Identity{});
    const double accuracy = evaluate(model, batches, Accuracy(), group);
    if (samples == 0) {
      EXPECT_TRUE(std::isnan(accuracy));
    } else {
      EXPECT_EQ(accuracy, static_cast<double>(right) / static_cast<double>(samples));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace argosy::metrics
