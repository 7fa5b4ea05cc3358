#include "argosy/engine/random_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

TEST(RandomState, DrawsTheSameNumbersAgain) {
  torch::manual_seed(3);
  (void)torch::randn({7});  // normal numbers come in pairs: one is kept for the next call
  const torch::nn::Linear module(2, 2);
  const StateDict state = random_state(*module);
  const torch::Tensor first = torch::cat({torch::randn({5}), torch::rand({5})});
  load_random_state(state);
  const torch::Tensor again = torch::cat({torch::randn({5}), torch::rand({5})});
  EXPECT_TRUE(torch::equal(first, again));
}

TEST(RandomState, WhatIsNoStateIsRefused) {
  StateDict state;
  state.set("random.cpu", torch::zeros({3}));
  EXPECT_THROW(load_random_state(state), CheckpointError);
  StateDict nowhere;
  nowhere.set("random.nowhere", torch::zeros({3}, torch::kByte));
  EXPECT_THROW(load_random_state(nowhere), CheckpointError);
}

TEST(RandomState, OtherEntriesAndAbsentDevicesAreLeftAlone) {
  StateDict state;
  state.set("buffer.x", torch::zeros({3}));
  state.set("random.cuda:63", torch::zeros({16}, torch::kByte));
  EXPECT_NO_THROW(load_random_state(state));
}

}  // namespace
}  // namespace argosy::engine
