#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/confusion_matrix.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/train.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::blobs;
using ::testing::ElementsAre;
using testing::run_job;
using testing::sgd_model;
using testing::small_net;

struct Gather : Callback {
  std::vector<Phase>* all;
  explicit Gather(std::vector<Phase>& into) : all(&into) {}
  void on_phase(const Phase& phase) override { all->push_back(phase); }
};

TEST(Phases, TellWhatEachStepsTimeGoesInto) {
  for (const int ranks : {1, 2}) {
    run_job(ranks, [ranks](int) {
      std::vector<Phase> phases;
      const auto before = std::chrono::steady_clock::now();
      sgd_model().fit(
          blobs(16 * ranks),
          blobs(4),
          {.batch_size = 4, .callbacks = {Gather(phases)}, .num_iters = 3, .log = {.verbose = 0}});
      std::map<PhaseKind, int> count;
      for (const Phase& phase : phases) {
        ++count[phase.kind];
        EXPECT_LE(before, phase.begin);
        EXPECT_LE(phase.begin, phase.end) << to_string(phase.kind);
        EXPECT_LE(phase.end, std::chrono::steady_clock::now());
      }
      EXPECT_EQ(count[PhaseKind::kDataWait], 3);
      EXPECT_EQ(count[PhaseKind::kForward], 3);
      EXPECT_EQ(count[PhaseKind::kBackward], 3);
      EXPECT_EQ(count[PhaseKind::kUpdate], 3);
      EXPECT_EQ(count[PhaseKind::kReduce], ranks == 1 ? 0 : 3);
      EXPECT_EQ(count[PhaseKind::kReduceWait], ranks == 1 ? 0 : 3);
      EXPECT_EQ(count[PhaseKind::kAgree], ranks == 1 ? 0 : 3);
      EXPECT_EQ(phases[0].kind, PhaseKind::kDataWait);
      EXPECT_EQ(phases.back().step, 2);
    });
  }
}

TEST(Phases, ReductionsLieInTheBackwardPassThatMadeThem) {
  run_job(2, [](int) {
    std::vector<Phase> phases;
    sgd_model().fit(blobs(32),
                    blobs(8),
                    {.batch_size = 2,
                     .callbacks = {Gather(phases)},
                     .accumulate_grad_batches = 2,
                     .log = {.verbose = 0}});
    int reductions = 0;
    Phase backward;
    for (const Phase& phase : phases) {
      if (phase.kind == PhaseKind::kBackward) {
        backward = phase;
      } else if (phase.kind == PhaseKind::kReduce || phase.kind == PhaseKind::kReduceWait) {
        ++reductions;
        EXPECT_LE(backward.begin, phase.begin);
        EXPECT_LE(phase.end, backward.end);
      }
    }
    EXPECT_EQ(reductions, 2 * 4);  // batches whose gradients only add up reduce nothing
    EXPECT_EQ(phases.back().kind, PhaseKind::kEvaluation);
  });
}

struct Tell : Callback {
  std::vector<std::string>* told;
  explicit Tell(std::vector<std::string>& into) : told(&into) {}
  void on_before_update(const Step& step) override {
    if (step.step == 1) {
      throw DataError("test.tell", "a bad sample");
    }
  }
  void on_exception(const Training& training, const std::string& what) override {
    told->push_back(std::to_string(training.step) + what);
    throw UsageError("test.tell", "must not hide the first one");
  }
};

TEST(Fit, CallbacksAreToldOfWhatEndsIt) {
  run_job(1, [](int) {
    std::vector<std::string> told;
    EXPECT_THAT(
        test::error_text<DataError>([&] {
          sgd_model().fit(
              blobs(16),
              {.batch_size = 4, .callbacks = {Tell(told), Tell(told)}, .log = {.verbose = 0}});
        }),
        ::testing::HasSubstr("a bad sample"));
    EXPECT_THAT(told,
                ElementsAre(::testing::StartsWith("1[test.tell] a bad sample"),
                            ::testing::StartsWith("1[test.tell] a bad sample")));
  });
}

struct Look : Callback {
  at::Tensor* counts;
  int64_t* rows;
  Look(at::Tensor& matrix, int64_t& samples) : counts(&matrix), rows(&samples) {}
  void on_eval_batch_begin(const EvalStep& step) override {
    EXPECT_EQ(step.inputs.size(), 1U);
    EXPECT_TRUE(step.outputs.empty());
  }
  void on_eval_batch_end(const EvalStep& step) override {
    ASSERT_EQ(step.outputs.size(), 1U);
    ASSERT_EQ(step.labels.size(), 1U);
    EXPECT_EQ(step.outputs[0].size(1), testing::kClasses);
    EXPECT_EQ(step.labels[0].size(0), step.inputs[0].size(0));
    *rows += step.inputs[0].size(0);
  }
  void on_eval_end(const Evaluation& evaluation) override {
    ASSERT_NE(evaluation.metrics, nullptr);
    EXPECT_TRUE(evaluation.logs.find("loss") != nullptr && evaluation.logs.size() == 1);
    *counts = evaluation.metrics->front().get<metrics::ConfusionMatrix>()->compute(
        evaluation.model.group());
  }
};

TEST(Evaluate, ShowsItsBatchesAndAMatrixThatIsNoFigure) {
  run_job(2, [](int) {
    at::Tensor counts;
    int64_t rows = 0;
    sgd_model(
        small_net(), {.lr = 0.1}, {metrics::ConfusionMatrix({.num_classes = testing::kClasses})})
        .evaluate(blobs(11), {.batch_size = 4, .verbose = 0, .callbacks = {Look(counts, rows)}});
    EXPECT_EQ(counts.sum().item<int64_t>(), 11);  // of both ranks
    EXPECT_TRUE(rows == 6 || rows == 5) << rows;
  });
}

}  // namespace
}  // namespace argosy::train
