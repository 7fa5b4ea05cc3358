// Figures of an epoch that several numbers of ranks share: as if nobody had stopped.
#include <cmath>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/collectives.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/auc.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/temp_dir.h"

namespace argosy::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_job;

constexpr int64_t kSamples = 96;

/// Eighths, so that sums and means of four have no rounding.
double score_of(int64_t i) {
  return static_cast<double>(i * 37 % 64 - 32) / 8;
}
int64_t label_of(int64_t i) {
  return static_cast<int64_t>((i * 13 % 5 < 2) != (score_of(i) > 1));
}

struct Scores {
  [[nodiscard]] int64_t size() const { return kSamples; }
  [[nodiscard]] std::tuple<torch::Tensor, torch::Tensor> get(int64_t i) const {
    return {torch::tensor({static_cast<float>(score_of(i))}), torch::tensor(label_of(i))};
  }
};

/// Each sample counted once, by the definitions.
struct Expected {
  double loss = 0, accuracy = 0, area = 0;
  Expected() {
    double above = 0;
    double right = 0;
    double positives = 0;
    for (int64_t i = 0; i < kSamples; ++i) {
      loss += std::abs(score_of(i) - static_cast<double>(label_of(i)));
      right += (score_of(i) > 0) == (label_of(i) == 1) ? 1 : 0;
      positives += static_cast<double>(label_of(i));
      for (int64_t j = 0; j < kSamples; ++j) {
        if (label_of(i) == 1 && label_of(j) == 0) {
          above += score_of(i) > score_of(j) ? 1 : score_of(i) == score_of(j) ? 0.5 : 0;
        }
      }
    }
    loss /= kSamples;
    accuracy = right / kSamples;
    area = above / (positives * (kSamples - positives));
  }
};

/// A user's metric that checkpoints keep; it cannot take over what another has counted.
struct Seen {
  int64_t samples = 0;
  void update(const at::Tensor& /*output*/, const at::Tensor& labels) { samples += labels.size(0); }
  [[nodiscard]] double compute(const comm::Group& group) const {
    at::Tensor all = torch::tensor({samples}, torch::kLong);
    if (group.valid() && group.size() > 1) {
      comm::all_reduce(all, group);
    }
    return static_cast<double>(all.item<int64_t>());
  }
  [[nodiscard]] std::vector<std::string> names() const { return {"seen"}; }
  void reset() { samples = 0; }
  [[nodiscard]] metrics::State state() const { return {samples}; }
  void load_state(const metrics::State& state) { samples = state.at(0); }
};

/// Logits 0 and x; the weights stay what they are.
Model judge(const std::vector<metrics::AnyMetric>& own = {}) {
  const torch::nn::Linear net(1, 2);
  const torch::NoGradGuard no_grad;
  net->weight.copy_(torch::tensor({{0.0F}, {1.0F}}));
  net->bias.zero_();
  std::vector<metrics::AnyMetric> metrics = {metrics::Accuracy(), metrics::Auc()};
  metrics.insert(metrics.end(), own.begin(), own.end());
  Model model(net);
  model.prepare(
      optim::SGD(net, {.lr = 0}),
      loss::Loss([](const at::Tensor& logits,
                    const at::Tensor& label) { return (logits.select(1, 1) - label).abs().mean(); },
                 "distance"),
      metrics);
  return model;
}

/// So many updates of these ranks, to which the samples are dealt anew, each with batches of four;
/// the rest of the epoch when that is less.
struct Updates {
  std::string folder;
  std::vector<metrics::AnyMetric> metrics{};
  int64_t accumulate = 1;
  [[nodiscard]] History operator()(int64_t updates) const {
    FitOptions options{.batch_size = 4,
                       .virtual_ranks = fleet::worker_num(),
                       .resume = Resume::kAuto,
                       .num_iters = updates,
                       .accumulate_grad_batches = accumulate,
                       .data = {.seed = 3},
                       .checkpoint = {.dir = folder},
                       .log = {.verbose = 0}};
    return judge(metrics).fit(Scores(), options);
  }
};

void expect_whole_epoch(const History& history) {
  const Expected expected;
  ASSERT_EQ(history.epochs.size(), 1U);
  EXPECT_EQ(history.epochs[0]["loss"], expected.loss);
  EXPECT_EQ(history.epochs[0]["acc"], expected.accuracy);
  EXPECT_EQ(history.epochs[0]["auc"], expected.area);
}

TEST(ResumeRanks, FiguresOfTheEpochCountEachSampleOnceHoweverManyRanksShareIt) {
  const test::TempDir folder;
  const Updates run{.folder = folder.path().string()};
  run_job(4, [&](int) { EXPECT_EQ(run(2).steps, 2); });  // 32 samples
  run_job(3, [&](int) { EXPECT_EQ(run(3).steps, 3); });  // 12
  run_job(1, [&](int) { EXPECT_EQ(run(6).steps, 6); });  // 12
  run_job(2, [&](int) {                                  // 40
    const History rest = run(100);
    EXPECT_EQ(rest.steps, 11);
    expect_whole_epoch(rest);
  });
}

TEST(ResumeRanks, UpdatesOfSeveralBatchesAndAShortRestCountEachSampleOnceToo) {
  const test::TempDir folder;
  const Updates run{.folder = folder.path().string(), .accumulate = 2};
  run_job(4, [&](int) { EXPECT_EQ(run(1).steps, 1); });  // 32 samples
  run_job(3, [&](int) {                                  // twice 24, and 12 with 2 + 1 + 1
    const History rest = run(100);
    EXPECT_EQ(rest.steps, 4);
    expect_whole_epoch(rest);
  });
}

TEST(ResumeRanks, FiguresOfAnEpochThatIsAllDoneButForItsEndAreThere) {
  const test::TempDir folder;
  const Updates run{.folder = folder.path().string()};
  run_job(4, [&](int) { EXPECT_EQ(run(6).steps, 6); });
  run_job(3, [&](int) { expect_whole_epoch(run(100)); });
}

/// A signal comes to rank 0 in the evaluation.
struct SignalToRankZero : Callback {
  void on_eval_batch_begin(const EvalStep& now) override {
    if (now.model.is_first_worker() && now.batch == 1) {
      ::raise(SIGTERM);
    }
  }
};

TEST(ResumeRanks, AnEpochThatIsDoneStaysDoneOnWhateverRanksItsEvaluationIsLeft) {
  for (const int last : {2, 1, 3}) {
    const test::TempDir folder;
    const auto fit = [&](const char* name, const std::vector<AnyCallback>& callbacks) {
      return judge().fit(Scores(),
                         Scores(),
                         {.batch_size = 7,
                          .resume = Resume::kAuto,
                          .callbacks = callbacks,
                          // drop_last leaves out twelve samples, which are nobody's.
                          .data = {.eval_batch_size = 4, .drop_last = true, .seed = 3},
                          .checkpoint = {.dir = (folder.path() / name).string(),
                                         .on_signal = OnSignal::kSaveAndReturn},
                          .log = {.verbose = 0}});
    };
    const auto cut = [&](int /*rank*/) {
      const History history = fit("cut", {SignalToRankZero()});
      EXPECT_EQ(history.ended, Ended::kPreempted);
      EXPECT_EQ(history.steps, 6);
    };
    run_job(2, cut);
    run_job(1, cut);
    run_job(last, [&](int) {
      const History rest = fit("cut", {});
      EXPECT_EQ(rest.steps, 6) << "on " << last << " ranks";
      ASSERT_EQ(rest.epochs.size(), 1U);
      const Expected expected;
      EXPECT_EQ(rest.epochs[0]["eval_loss"], expected.loss);
      std::ofstream(folder.path() / "figures") << rest.epochs[0].to_string();
    });
    run_job(2, [&](int) {
      std::ostringstream figures;
      figures << std::ifstream(folder.path() / "figures").rdbuf();
      EXPECT_EQ(fit("whole", {}).epochs.at(0).to_string(), figures.str());
    });
  }
}

TEST(ResumeRanks, AMetricThatCannotMergeBeginsAnewAndItIsSaid) {
  const test::TempDir folder;
  const Updates run{.folder = folder.path().string(), .metrics = {Seen()}};
  run_job(3, [&](int) { EXPECT_EQ(run(2).epochs.at(0)["seen"], 24); });
  run_job(2, [&](int rank) {
    ::testing::internal::CaptureStderr();
    const History rest = run(100);
    const std::string told = ::testing::internal::GetCapturedStderr();
    expect_whole_epoch(rest);
    EXPECT_EQ(rest.epochs.at(0)["seen"], kSamples - 24);
    const auto said = HasSubstr("the metric \"seen\" begins the epoch anew");
    if (rank == 0) {
      EXPECT_THAT(told, said);
    } else {
      EXPECT_THAT(told, Not(said));
    }
  });
}

/// The same without anything for checkpoints.
struct Forgets {
  Seen seen{};
  void update(const at::Tensor& output, const at::Tensor& labels) { seen.update(output, labels); }
  [[nodiscard]] double compute(const comm::Group& group) const { return seen.compute(group); }
  [[nodiscard]] std::vector<std::string> names() const { return {"forgets"}; }
  void reset() { seen.reset(); }
};

TEST(ResumeRanks, AMetricWithoutAStateDoesNotKeepACheckpointFromBeingSaved) {
  for (const int ranks : {2, 1, 4}) {
    const test::TempDir folder;
    const Updates run{.folder = folder.path().string(), .metrics = {Forgets(), Seen()}};
    run_job(2, [&](int) { EXPECT_EQ(run(2).epochs.at(0)["forgets"], 16); });
    run_job(ranks, [&](int rank) {
      ::testing::internal::CaptureStderr();
      const History rest = run(100);
      const std::string told = ::testing::internal::GetCapturedStderr();
      expect_whole_epoch(rest);
      EXPECT_EQ(rest.epochs.at(0)["forgets"], kSamples - 16);
      EXPECT_EQ(rest.epochs.at(0)["seen"], ranks == 1 ? kSamples - 16 : kSamples);
      EXPECT_EQ(
          told.find("\"forgets\" begins the epoch anew: it has no state()") != std::string::npos,
          rank == 0)
          << told;
    });
  }
}

TEST(ResumeRanks, MoreRanksGoOnWithTheSumsOfAMetricThatCannotMerge) {
  const test::TempDir folder;
  const Updates run{.folder = folder.path().string(), .metrics = {Seen()}};
  run_job(1, [&](int) { EXPECT_EQ(run(3).steps, 3); });
  run_job(2, [&](int) { EXPECT_EQ(run(100).epochs.at(0)["seen"], kSamples); });
}

}  // namespace
}  // namespace argosy::train
