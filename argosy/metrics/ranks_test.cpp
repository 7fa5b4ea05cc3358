// N ranks report exactly what one process reports about the same samples.
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/init.h"
#include "argosy/metrics/classes_test_support.h"
#include "argosy/metrics/metrics.h"
#include "argosy/metrics/sum_over_ranks.h"
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

/// Takes so long for a batch.
struct SlowImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    std::this_thread::sleep_for(400ms);
    return x;
  }
};
TORCH_MODULE(Slow);

TEST(Evaluate, ARankWithoutBatchesWaitsLongerThanTheTimeout) {
  const auto store = rendezvous::in_process_store();
  test::run_ranks(2, [&](int rank) {
    comm::Group group = comm::connect(
        {.backend = "in_process", .store = store, .rank = rank, .size = 2, .timeout = 100ms});
    std::vector<std::pair<at::Tensor, at::Tensor>> batches;
    if (rank == 0) {
      batches.emplace_back(torch::tensor({{0.0, 1.0}}), torch::tensor({1}));
    }
    EXPECT_EQ(evaluate(Slow(), batches, Accuracy(), group), 1.0);
  });
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
    SumOverRanks sum;
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

TEST_P(Ranks, EveryMetricHasTheBitsOfOneProcess) {
  const GoldenSamples s;
  const std::vector<std::tuple<AnyMetric, at::Tensor, at::Tensor>> cases = {
      {Precision(), s.scores, s.positive},
      {Recall({.num_classes = 5, .average = Average::kWeighted}), s.logits, s.labels},
      {F1({.num_classes = 5, .average = Average::kNone}), s.logits, s.labels},
      {Auc(), s.scores, s.positive},
      {Auc({.curve = Curve::kPr}), s.scores, s.positive},
      {Auc({.num_thresholds = 4095}), s.scores, s.positive},
      {MeanSquaredError(), s.scores.mul(1e9).exp2().log1p().sub(1.0 / 3), s.positive},
      {MeanAbsoluteError(), s.scores.pow(9), s.positive},
      {Perplexity({.ignore_index = 2}), s.logits, s.labels}};
  for (const auto& [metric, output, labels] : cases) {
    AnyMetric alone = metric;
    alone.update(output, labels);
    with_group(GetParam(),
               [&, &metric = metric, &output = output, &labels = labels](const comm::Group& group) {
                 AnyMetric part = metric;
                 const int64_t r = group.rank();
                 // Uneven: rank r has the samples from 211 r²/n² on; the last gets them in two
                 // parts.
                 const int64_t n = group.size();
                 const int64_t from = 211 * r * r / (n * n);
                 const int64_t to = 211 * (r + 1) * (r + 1) / (n * n);
                 part.update(output.slice(0, from, from + 1), labels.slice(0, from, from + 1));
                 part.update(output.slice(0, from + 1, to), labels.slice(0, from + 1, to));
                 EXPECT_EQ(part.values(group), alone.values()) << part.names()[0];
                 EXPECT_EQ(part.values(group), alone.values())
                     << "values() must not change the metric";
                 // All samples on the last rank, the others are empty.
                 AnyMetric lonely = metric;
                 if (r == n - 1) {
                   lonely.update(output, labels);
                 }
                 EXPECT_EQ(lonely.values(group), alone.values()) << part.names()[0];
                 AnyMetric empty = metric;
                 EXPECT_TRUE(std::isnan(empty.values(group)[0])) << part.names()[0];
               });
  }
}

TEST_P(Ranks, ConfusionMatrixAndThroughputOverRanks) {
  const GoldenSamples s;
  ConfusionMatrix alone({.num_classes = 5});
  alone.update(s.logits, s.labels);
  with_group(GetParam(), [&](const comm::Group& group) {
    const int64_t r = group.rank();
    ConfusionMatrix part({.num_classes = 5});
    part.update(s.logits.slice(0, r, {}, group.size()), s.labels.slice(0, r, {}, group.size()));
    EXPECT_TRUE(part.compute(group).equal(alone.compute()));
    EXPECT_EQ(part.to_string({.group = group}), alone.to_string());

    auto now = 0ns;
    Throughput throughput({.clock = [&now] { return now; }});
    throughput.update(10 * (r + 1));
    now += (r + 1) * 1s;  // the slowest takes as many seconds as there are ranks
    const double n = group.size();
    EXPECT_DOUBLE_EQ(throughput.compute(group), 10 * n * (n + 1) / 2 / n);
  });
}

TEST_P(Ranks, ANanScoreOfOneRankIsSeenByAll) {
  with_group(GetParam(), [&](const comm::Group& group) {
    const bool last = group.rank() == group.size() - 1;
    for (const int64_t thresholds : {0, 10}) {
      Auc auc({.num_thresholds = thresholds});
      auc.update(torch::tensor({0.1, last ? std::nan("") : 0.3}), torch::tensor({0, 1}));
      EXPECT_TRUE(std::isnan(auc.compute(group)));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Ranks, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace argosy::metrics
