// Parameters by collectives beside rows on servers.
#include "argosy/ps/hybrid_steps.h"

#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/load.h"
#include "argosy/ps/training.h"
#include "argosy/ps/training_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using namespace trained;
using test::error_text;
using ::testing::HasSubstr;

struct Learned {
  std::vector<float> losses{};  ///< of the first worker
  at::Tensor weights{};
};

/// Trains until that step, and saves after each second one if there is a folder.
Learned learn(const Job& job, int until = 6) {
  Learned result;
  run_job(job, [&](ServedTraining& training, ServedNet& net, int worker) {
    while (training.steps() < until) {
      const float loss = backward(training, net, worker, training.steps());
      training.step();
      if (worker == 0) {
        result.losses.push_back(loss);
      }
      if (!job.options.checkpoints.empty() && training.steps() % 2 == 0) {
        training.save();
      }
    }
    if (worker == 0) {
      result.weights = weights_of(net);
    }
  });
  return result;
}

Job job_of(int workers, DenseUpdates dense, const std::string& checkpoints = "") {
  return {.servers = 2,
          .workers = workers,
          .optimizer = by_adam,
          .options = {.dense = dense, .checkpoints = checkpoints}};
}

TEST(HybridSteps, HaveTheBitsOfServersInSyncMode) {
  for (const int workers : {1, 2, 3, 4}) {
    const Learned served = learn(job_of(workers, DenseUpdates::kServers));
    const Learned hybrid = learn(job_of(workers, DenseUpdates::kCollectives));
    EXPECT_EQ(hybrid.losses, served.losses) << workers;
    EXPECT_TRUE(torch::equal(hybrid.weights, served.weights)) << workers;
  }
}

TEST(HybridSteps, GoOnWithTheOtherForm) {
  const Learned whole = learn(job_of(2, DenseUpdates::kServers));
  for (const DenseUpdates first : {DenseUpdates::kServers, DenseUpdates::kCollectives}) {
    for (const DenseUpdates second : {DenseUpdates::kServers, DenseUpdates::kCollectives}) {
      const test::TempDir directory;
      const std::string folder = directory.path().string();
      (void)learn(job_of(2, first, folder), 3);  // its last save is of 2
      const Learned rest = learn(job_of(2, second, folder));
      EXPECT_EQ(rest.losses, std::vector<float>(whole.losses.begin() + 2, whole.losses.end()));
      EXPECT_TRUE(torch::equal(rest.weights, whole.weights));
      const checkpoint::Checkpoint saved(folder + "/" + checkpoint::step_name(6));
      EXPECT_TRUE(torch::equal(saved.part("model").at("head.bias"), whole.weights.slice(0, -3)));
    }
  }
}

TEST(HybridSteps, KeepParametersInStepWhileRowsAreNot) {
  constexpr int kWorkers = 3;
  std::vector<at::Tensor> heads(kWorkers);
  at::Tensor first;
  Job job = job_of(kWorkers, DenseUpdates::kCollectives);
  job.options.mode = UpdateMode::kAsync;
  job.options.staleness_scaled = true;
  job.options.delay_compensation = 0.1;
  run_job(job, [&](ServedTraining& training, ServedNet& net, int worker) {
    if (worker == 0) {
      first = net.head->weight.detach().clone();
    }
    for (int step = 0; step < 8; ++step) {
      (void)backward(training, net, worker, step);
      training.step();
    }
    heads[static_cast<size_t>(worker)] = net.head->weight.detach().clone();
    EXPECT_TRUE(at::isfinite(weights_of(net)).all().item<bool>());
  });
  EXPECT_FALSE(torch::equal(heads[0], first));
  EXPECT_TRUE(torch::equal(heads[1], heads[0]));
  EXPECT_TRUE(torch::equal(heads[2], heads[0]));
}

TEST(HybridSteps, AreRefusedWithWorkersThatTrainByThemselves) {
  ServedNet net;
  EXPECT_THAT(
      error_text<UsageError>([&] {
        const ServedTraining training(
            net, by_sgd(net), {.mode = UpdateMode::kGeo, .dense = DenseUpdates::kCollectives});
      }),
      HasSubstr("dense by collectives is not for kGeo"));
}

}  // namespace
}  // namespace argosy::ps
