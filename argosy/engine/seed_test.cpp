#include "argosy/engine/seed.h"

#include <cstdlib>
#include <limits>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

/// Leaves the process as it was.
class Seed : public testing::Test {
 protected:
  void TearDown() override {
    set_deterministic(Deterministic::kOff);
    at::globalContext().setBenchmarkCuDNN(benchmark_);
    threads_ == nullptr ? unsetenv("OMP_NUM_THREADS") : setenv("OMP_NUM_THREADS", kept_.c_str(), 1);
  }

 private:
  const char* threads_ = std::getenv("OMP_NUM_THREADS");
  std::string kept_ = threads_ == nullptr ? "" : threads_;
  bool benchmark_ = at::globalContext().benchmarkCuDNN();
};

TEST_F(Seed, OfTheProgramIsKnownWhateverWeSeedSince) {
  argosy::seed_everything(7, 3);
  EXPECT_EQ(base_seed(), 7U);
  seed_generators(99);
  const at::Tensor drawn = torch::rand({8});
  EXPECT_EQ(base_seed(), 7U);
  argosy::seed_everything(99);
  EXPECT_TRUE(drawn.equal(torch::rand({8})));
  torch::manual_seed(12);  // the program's own way
  EXPECT_EQ(base_seed(), 12U);
  seed_generators(99);
  EXPECT_EQ(base_seed(), 12U);
}

TEST_F(Seed, RepeatsAndParts) {
  auto draw = [](uint64_t seed, int rank) {
    argosy::seed_everything(seed, rank);
    return torch::rand({8});
  };
  EXPECT_TRUE(draw(7, 0).equal(draw(7, 0)));
  EXPECT_TRUE(draw(7, 3).equal(draw(7, 3)));
  EXPECT_FALSE(draw(7, 0).equal(draw(7, 1)));
  EXPECT_FALSE(draw(7, 1).equal(draw(8, 1)));
  const at::Tensor rank_0 = draw(7, 0);
  torch::manual_seed(7);
  EXPECT_TRUE(rank_0.equal(torch::rand({8}))) << "one process draws what manual_seed gives";
  EXPECT_THROW(argosy::seed_everything(1, -1), UsageError);
}

TEST_F(Seed, NoTwoRanksOfNeighbouringSeedsShareOne) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (int rank = 0; rank < 50; ++rank) {
      EXPECT_TRUE(seen.insert(seed_of_rank(seed, rank)).second) << seed << " " << rank;
    }
  }
  EXPECT_EQ(seed_of_rank(std::numeric_limits<uint64_t>::max(), 0),
            std::numeric_limits<uint64_t>::max());
}

TEST_F(Seed, DeterministicIsSetAndSaysWhatItLacks) {
  EXPECT_EQ(deterministic(), Deterministic::kOff);
  unsetenv("OMP_NUM_THREADS");
  const std::vector<std::string> gaps = set_deterministic(Deterministic::kOn);
  EXPECT_EQ(deterministic(), Deterministic::kOn);
  EXPECT_TRUE(at::globalContext().deterministicCuDNN());
  EXPECT_FALSE(at::globalContext().benchmarkCuDNN());
  if (at::get_num_threads() > 1) {
    EXPECT_THAT(gaps, testing::Contains(testing::HasSubstr("OMP_NUM_THREADS")));
  }
  setenv("OMP_NUM_THREADS", "1", 1);
  if (!torch::cuda::is_available()) {
    EXPECT_THAT(set_deterministic(Deterministic::kWarn), testing::IsEmpty());
  }
  set_deterministic(Deterministic::kWarn);
  EXPECT_EQ(deterministic(), Deterministic::kWarn);
  EXPECT_THAT(set_deterministic(Deterministic::kOff), testing::IsEmpty());
  EXPECT_EQ(deterministic(), Deterministic::kOff);
  EXPECT_FALSE(at::globalContext().deterministicCuDNN());
}

TEST_F(Seed, OperatorsWithoutADeterministicWayThrow) {
  const at::Tensor x = torch::zeros({4});
  auto put = [&] { x.put_(torch::tensor({1, 1}), torch::ones({2})); };
  put();
  set_deterministic(Deterministic::kOn);
  EXPECT_THROW(put(), c10::Error);
}

}  // namespace
}  // namespace argosy::engine
