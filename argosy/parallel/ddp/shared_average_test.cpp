/// An average of weights that all ranks share one copy of: each rank has it, and its own weights
/// back, without the others noticing.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/parallel/ddp/divided_step_test_support.h"

namespace argosy::parallel {
namespace {

using testing::expect_same_bits;
using testing::on_ranks;
using testing::process_group;
using testing::recipes;
using testing::Trained;

using Values = std::vector<at::Tensor>;

Values values_of(const Trained& trained) {
  Values out;
  for (const at::Tensor& parameter : trained.model.parameters()) {
    out.push_back(parameter.detach().clone());
  }
  return out;
}

void expect_values(const Trained& trained, const Values& expected, const std::string& what) {
  const Values now = values_of(trained);
  for (size_t i = 0; i < now.size(); ++i) {
    expect_same_bits(now[i], expected[i], what + ", parameter " + std::to_string(i));
  }
}

/// The ranks apply and restore one after the other, and train on.
void expect_private_averages(comm::Group& group) {
  Trained shared(group, recipes()[0], true, 37, {.share_parameters = true});
  Trained plain(group, recipes()[0], false);
  ASSERT_TRUE(shared.divided);
  optim::ExponentialMovingAverage average(shared.model, {.decay = 0.5});
  optim::ExponentialMovingAverage expected(plain.model, {.decay = 0.5});
  for (int step = 0; step < 6; ++step) {
    shared.step(group, step);
    plain.step(group, step);
    average.update();
    expected.update();
    const Values weights = values_of(plain);
    expected.apply();
    const Values averaged = values_of(plain);
    expected.restore();
    for (int turn = 0; turn < group.size(); ++turn) {  // in the order of the ranks
      if (turn == group.rank()) {
        expect_values(shared, weights, "before it is applied");
        average.apply();
      }
      comm::barrier(group);
    }
    expect_values(shared, averaged, "applied");
    comm::barrier(group);
    for (int turn = 0; turn < group.size(); ++turn) {
      if (turn == group.rank()) {
        expect_values(shared, averaged, "applied while others have restored theirs");
        average.restore();
      }
      comm::barrier(group);
    }
    expect_values(shared, weights, "restored in step " + std::to_string(step));
    expect_same_bits(shared.optimizer.state_dict(), plain.optimizer.state_dict(), "its state");
  }
}

TEST(SharedAverage, EachRankHasItByItself) {
  on_ranks(3, [](comm::Group& group) { expect_private_averages(group); });
}

TEST(SharedAverage, EachProcessHasItByItself) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    comm::Group group = process_group(folder, rank, 2);
                    expect_private_averages(group);
                  },
                  {.mode = test::RankMode::kProcesses});
}

}  // namespace
}  // namespace argosy::parallel
