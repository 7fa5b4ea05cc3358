// What a training does about late gradients.
#include <array>
#include <barrier>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/ps/training.h"
#include "argosy/ps/training_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using namespace trained;
using test::error_text;
using ::testing::HasSubstr;

constexpr int kWorkers = 3;
constexpr int kRounds = 4;

TrainingOptions late(bool scaled, double compensation) {
  return {
      .mode = UpdateMode::kAsync, .staleness_scaled = scaled, .delay_compensation = compensation};
}

/// In each round all workers compute gradients, then they push them one after the other.
at::Tensor in_turns(const TrainingOptions& options) {
  at::Tensor result;
  std::barrier<> all(kWorkers);
  run_job({.servers = 2, .workers = kWorkers, .options = options},
          [&](ServedTraining& training, ServedNet& net, int worker) {
            for (int round = 0; round < kRounds; ++round) {
              (void)backward(training, net, worker, round);
              for (int turn = 0; turn < kWorkers; ++turn) {
                all.arrive_and_wait();
                if (turn == worker) {
                  training.step();
                }
              }
              all.arrive_and_wait();
            }
            if (worker == 0) {
              training.pull();
              result = weights_of(net);
            }
          });
  return result;
}

/// The same, written out. A worker reads rows at the beginning of a round, and parameters after its
/// own push.
at::Tensor in_turns_by_hand(const TrainingOptions& options) {
  struct Weights {
    at::Tensor rows, weight, bias;
    int seen = 0;  // steps of the others, when weight and bias were read
  };
  const LocalNet first = first_net();
  Weights now{first.words->weight.detach().clone(),
              first.head->weight.detach().clone(),
              first.head->bias.detach().clone()};
  std::vector<Weights> read(kWorkers, now);
  for (int round = 0; round < kRounds; ++round) {
    const at::Tensor rows = now.rows.clone();
    std::array<std::vector<at::Tensor>, kWorkers> gradients;
    for (int worker = 0; worker < kWorkers; ++worker) {
      LocalNet net;
      {
        const torch::NoGradGuard no_grad;
        net.words->weight.copy_(rows);
        net.head->weight.copy_(read[static_cast<size_t>(worker)].weight);
        net.head->bias.copy_(read[static_cast<size_t>(worker)].bias);
      }
      loss_of(net, worker, round).backward();
      gradients[static_cast<size_t>(worker)] = {
          net.words->weight.grad(), net.head->weight.grad(), net.head->bias.grad()};
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      Weights& mine = read[static_cast<size_t>(worker)];
      const int others = round * (kWorkers - 1) + worker;
      const auto push = [&](at::Tensor& weights, const at::Tensor& old, size_t i, int staleness) {
        const at::Tensor& g = gradients[static_cast<size_t>(worker)][i];
        const double rate = options.staleness_scaled ? 0.1 / std::max(staleness, 1) : 0.1;
        weights = weights - rate * (g + options.delay_compensation * g * g * (weights - old));
      };
      push(now.rows, rows, 0, worker);
      push(now.weight, mine.weight, 1, others - mine.seen);
      push(now.bias, mine.bias, 2, others - mine.seen);
      mine = now;
      mine.seen = others;
    }
  }
  return torch::cat({now.rows.reshape(-1), now.weight.reshape(-1), now.bias});
}

TEST(LateTraining, IsTheAlgorithmOfThePapers) {
  const TrainingOptions plain = late(false, 0);
  const at::Tensor without = in_turns(plain);
  EXPECT_TRUE(torch::allclose(without, in_turns_by_hand(plain), 1e-5, 1e-6));
  for (const TrainingOptions& options : {late(true, 0), late(false, 2), late(true, 2)}) {
    const at::Tensor result = in_turns(options);
    EXPECT_TRUE(torch::allclose(result, in_turns_by_hand(options), 1e-5, 1e-6));
    EXPECT_FALSE(torch::allclose(result, without, 1e-5, 1e-6)) << "nothing was late";
  }
}

TEST(LateTraining, OfOneWorkerIsPlainTraining) {
  LocalNet alone = first_net();
  optim::Optimizer optimizer = by_sgd(alone);
  for (int step = 0; step < kRounds; ++step) {
    optimizer.zero_grad();
    loss_of(alone, 0, step).backward();
    optimizer.step();
  }
  for (const bool accumulates : {false, true}) {
    run_job({.servers = 2, .options = late(true, 2)},
            [&](ServedTraining& training, ServedNet& net, int) {
              for (int step = 0; step < kRounds; ++step) {
                (void)backward(training, net, 0, step);
                if (accumulates) {
                  (void)net.forward(torch::zeros({1, 1}, at::kLong));  // a read without a backward
                }
                training.step();
              }
              EXPECT_TRUE(torch::equal(weights_of(net), weights_of(alone)));
            });
  }
}

TEST(LateTraining, CanBeRepeatedToTheBit) {
  expect_repeated_to_the_bit(late(true, 2), kWorkers);
}

TEST(LateTraining, IsRefusedWhereNothingIsLate) {
  ServedNet net;
  const auto text_of = [&](const TrainingOptions& options) {
    return error_text<UsageError>(
        [&] { const ServedTraining training(net, by_sgd(net), options); });
  };
  EXPECT_THAT(text_of({.staleness_scaled = true}),
              HasSubstr("staleness_scaled is for kAsync and kHalfAsync: in kSync no gradient is"));
  EXPECT_THAT(text_of({.mode = UpdateMode::kGeo, .delay_compensation = 1}),
              HasSubstr("delay_compensation is for kAsync and kHalfAsync: in kGeo workers send"));
  EXPECT_THAT(text_of({.mode = UpdateMode::kAsync, .delay_compensation = -0.5}),
              HasSubstr("expected a number from 0 on, got -0.5"));
}

}  // namespace
}  // namespace argosy::ps
