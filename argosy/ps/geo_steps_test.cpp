// Workers that train by themselves for some steps.
#include "argosy/ps/geo_steps.h"

#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/optim/sgd.h"
#include "argosy/ps/training.h"
#include "argosy/ps/training_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using namespace trained;
using test::error_text;
using ::testing::HasSubstr;

TrainingOptions geo(int64_t steps, const std::string& checkpoints = "") {
  return {.mode = UpdateMode::kGeo, .geo_steps = steps, .checkpoints = checkpoints};
}

/// One worker makes steps up to that one, and saves after those.
at::Tensor alone(const Job& job, int until, const std::set<int64_t>& saves = {}) {
  at::Tensor result;
  run_job(job, [&](ServedTraining& training, ServedNet& net, int) {
    while (training.steps() < until) {
      (void)backward(training, net, 0, training.steps());
      training.step();
      if (saves.contains(training.steps())) {
        training.save();
      }
    }
    result = weights_of(net);
  });
  return result;
}

TEST(GeoSteps, OfOneWorkerArePlainTraining) {
  for (const MakeOptimizer& make : {MakeOptimizer(by_sgd), MakeOptimizer(by_adam)}) {
    const at::Tensor plain = alone({.servers = 2, .optimizer = make}, 20);
    for (const int64_t steps : {1, 3, 100}) {
      const at::Tensor result = alone({.servers = 2, .optimizer = make, .options = geo(steps)}, 20);
      // A difference and its sum round once each: a part in 2^24 of the weight, in each round.
      EXPECT_TRUE(torch::allclose(result, plain, 20 * 0x1p-23, 20 * 0x1p-25))
          << steps << ": " << (result - plain).abs().max();
      EXPECT_TRUE(steps < 100 || torch::equal(result, plain)) << "no round has ended";
    }
  }
}

/// What a worker of the algorithm below has.
struct Apart {
  LocalNet net = first_net();
  optim::Optimizer optimizer = by_sgd(net);
  at::Tensor begun_rows = net.words->weight.detach().clone();
  at::Tensor begun_weight{}, begun_bias{};
  std::set<int64_t> here{}, used{};  ///< rows
};

/// The algorithm, written out.
class ByHand {
 public:
  explicit ByHand(int workers) : workers_(static_cast<size_t>(workers)) {
    const LocalNet first = first_net();
    rows_ = first.words->weight.detach().clone();
    weight_ = first.head->weight.detach().clone();
    bias_ = first.head->bias.detach().clone();
    for (int worker = 0; worker < workers; ++worker) {
      read(worker);
    }
  }
  void step(int worker, int step) {
    Apart& mine = workers_[static_cast<size_t>(worker)];
    const at::Tensor ids = batch_of(worker, step).first.reshape(-1);
    for (int64_t i = 0; i < ids.numel(); ++i) {
      const auto id = ids[i].item<int64_t>();
      if (mine.here.insert(id).second) {
        take_row(mine, id);
      }
      mine.used.insert(id);
    }
    mine.optimizer.zero_grad();
    loss_of(mine.net, worker, step).backward();
    mine.optimizer.step();
  }
  void end_round(int worker) {
    const torch::NoGradGuard no_grad;
    Apart& mine = workers_[static_cast<size_t>(worker)];
    const auto workers = static_cast<double>(workers_.size());
    for (const int64_t id : mine.used) {
      rows_[id].add_((mine.net.words->weight[id] - mine.begun_rows[id]) / workers);
    }
    weight_.add_((mine.net.head->weight - mine.begun_weight) / workers);
    bias_.add_((mine.net.head->bias - mine.begun_bias) / workers);
    read(worker);
  }
  [[nodiscard]] at::Tensor weights() const {
    return torch::cat({rows_.reshape(-1), weight_.reshape(-1), bias_});
  }

 private:
  void take_row(Apart& mine, int64_t id) {
    const torch::NoGradGuard no_grad;
    mine.net.words->weight[id].copy_(rows_[id]);
    mine.begun_rows[id].copy_(rows_[id]);
  }
  void read(int worker) {
    const torch::NoGradGuard no_grad;
    Apart& mine = workers_[static_cast<size_t>(worker)];
    mine.net.head->weight.copy_(weight_);
    mine.net.head->bias.copy_(bias_);
    mine.begun_weight = weight_.clone();
    mine.begun_bias = bias_.clone();
    mine.here = std::exchange(mine.used, {});
    for (const int64_t id : mine.here) {
      take_row(mine, id);
    }
  }

  std::vector<Apart> workers_;
  at::Tensor rows_, weight_, bias_;
};

TEST(GeoSteps, OfSeveralWorkersAreTheAlgorithmToTheBit) {
  constexpr int kSteps = 7;
  constexpr int kRound = 3;
  for (const int workers : {2, 3}) {
    ByHand by_hand(workers);
    for (int step = 0; step < kSteps; ++step) {
      for (int worker = 0; worker < workers; ++worker) {
        by_hand.step(worker, step);
        if (step % kRound == kRound - 1) {
          by_hand.end_round(worker);
        }
      }
    }
    for (int worker = 0; worker < workers; ++worker) {
      by_hand.end_round(worker);  // of one step
    }
    std::barrier<> all(workers);
    run_job({.servers = 2, .workers = workers, .options = geo(kRound)},
            [&](ServedTraining& training, ServedNet& net, int worker) {
              const auto in_turn = [&](const std::function<void()>& act) {
                for (int turn = 0; turn < workers; ++turn) {
                  all.arrive_and_wait();
                  if (turn == worker) {
                    act();
                  }
                }
                all.arrive_and_wait();
              };
              for (int step = 0; step < kSteps; ++step) {
                in_turn([&] {
                  (void)backward(training, net, worker, step);
                  training.step();
                });
              }
              EXPECT_EQ(training.steps(), kSteps);
              in_turn([&] { training.pull(); });
              training.pull();  // of a round without steps: a read, and no push
              if (worker == 0) {
                training.pull();
                EXPECT_TRUE(torch::equal(weights_of(net), by_hand.weights())) << workers;
              }
              all.arrive_and_wait();
            });
  }
}

TEST(GeoSteps, ReadARowOnceInARound) {
  run_job({.options = geo(100)}, [&](ServedTraining& training, ServedNet& net, int) {
    const at::Tensor ids = torch::arange(3).reshape({1, 3});
    const at::Tensor first = net.words(ids).detach().clone();
    for (int step = 0; step < 2; ++step) {
      training.optimizer().zero_grad();
      net.words(ids).sum().backward();
      training.step();
    }
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::allclose(net.words(ids), first - 0.2));
    EXPECT_EQ(training.stats()[0].rows, 0U) << "the servers know of it already";
    training.pull();
    EXPECT_EQ(training.stats()[0].rows, 3U);
    EXPECT_TRUE(torch::allclose(net.words(ids), first - 0.2));
  });
}

TEST(GeoSteps, ThatAreLeftAreSentAtTheEnd) {
  run_job({.workers = 2, .options = geo(100)},
          [&](ServedTraining& training, ServedNet& net, int worker) {
            if (worker == 1) {
              (void)backward(training, net, worker, 0);
              training.step();
              return;  // to stop()
            }
            const Deadline deadline = Deadline::after(30s);
            while (training.stats()[0].rows == 0 && !deadline.expired()) {
              std::this_thread::sleep_for(10ms);
            }
            EXPECT_GT(training.stats()[0].rows, 0U);
          });
}

TEST(GeoSteps, GoOnFromACheckpoint) {
  const test::TempDir directory;
  const auto folder = [&](const char* name) { return (directory.path() / name).string(); };
  // A save in the middle of a round ends it.
  const at::Tensor whole = alone({.servers = 2, .options = geo(3, folder("whole"))}, 10, {4, 8});
  (void)alone({.servers = 2, .options = geo(3, folder("parts"))}, 6, {4});
  const at::Tensor rest = alone({.servers = 3, .options = geo(3, folder("parts"))}, 10, {8});
  EXPECT_TRUE(torch::equal(rest, whole));
  // Another mode goes on from it.
  const at::Tensor other =
      alone({.options = {.mode = UpdateMode::kSync, .checkpoints = folder("parts")}}, 10);
  EXPECT_TRUE(torch::allclose(other, whole, 1e-5, 1e-6));
}

TEST(GeoSteps, CanBeRepeatedToTheBit) {
  expect_repeated_to_the_bit(geo(2), 3);
}

TEST(GeoSteps, RefuseWhatCannotBe) {
  ServedNet net({}, Entry::count(2));
  EXPECT_THAT(
      error_text<UsageError>([&] { const ServedTraining training(net, by_sgd(net), geo(2)); }),
      HasSubstr("table \"words\" makes a row at push 2: in kGeo workers train rows before"));
  ServedNet plain;
  EXPECT_THAT(
      error_text<UsageError>([&] { const ServedTraining training(plain, by_sgd(plain), geo(0)); }),
      HasSubstr("geo_steps: expected 1 or more, got 0"));
}

}  // namespace
}  // namespace argosy::ps
