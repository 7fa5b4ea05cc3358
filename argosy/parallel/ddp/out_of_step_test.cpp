// Ranks that are at different places of the training: named at the next reduction.
#include <gmock/gmock.h>
#include <torch/optim/sgd.h>

#include "argosy/base/error.h"
#include "argosy/comm/init.h"
#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

at::Tensor batch() {
  return values({4, 3}, 10.0);
}

/// What a rank does for one update; `odd`: as nobody else does.
struct Mistake {
  const char* name;
  void (*update)(DistributedDataParallel<TwoLayers>& model,
                 const std::function<void()>& step,
                 bool odd);
  const char* named;  ///< of rank 1, which makes it in its third update
};

void backward(DistributedDataParallel<TwoLayers>& model) {
  model(batch()).sum().backward();
}

const Mistake kMistakes[] = {
    {"SkippedStep",
     [](auto& model, const auto& step, bool odd) {
       backward(model);
       if (!odd) {
         step();
       }
     },
     "rank 1 begins backward pass 2 of update 3 while rank 0 begins update 4"},
    {"LeftOutBackward",
     [](auto& model, const auto& step, bool odd) {
       for (int pass = odd ? 1 : 0; pass < 2; ++pass) {
         backward(model);
       }
       step();
     },
     "rank 0 begins backward pass 2 of update 3 while rank 1 begins update 4"},
    {"OnePassMore",
     [](auto& model, const auto& step, bool odd) {
       for (int pass = 0; pass < (odd ? 3 : 2); ++pass) {
         backward(model);
       }
       step();
     },
     "rank 1 begins backward pass 3 of update 3 while rank 0 begins update 4"},
};

class OutOfStep
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const Mistake*>> {};

TEST_P(OutOfStep, IsNamedAtTheNextReduction) {
  const auto& [backend, optimizer_kind, mistake] = GetParam();
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    const comm::Group group =
        comm::connect({.backend = backend, .store = store, .rank = rank, .size = 2, .timeout = 3s});
    DistributedDataParallel model(TwoLayers(0.0), group);
    optim::SGD ours(model, {.lr = 0.1});
    torch::optim::SGD theirs(model.parameters(), 0.1);
    const std::function<void()> step = [&] {
      optimizer_kind == std::string("ours") ? ours.step() : (void)theirs.step();
    };
    for (int update = 1; update <= 6; ++update) {
      mistake->update(model, step, rank == 1 && update == 3);
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, HasSubstr(mistake->named)) << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr("did rank"));
    EXPECT_THAT(outcome.error, HasSubstr("no_sync()"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes,
    OutOfStep,
    ::testing::Combine(::testing::Values("in_process", "gloo", "shm"),
                       ::testing::Values("ours", "theirs"),
                       ::testing::Values(&kMistakes[0], &kMistakes[1], &kMistakes[2])),
    [](const auto& info) {
      return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param) + "_" +
             std::get<2>(info.param)->name;
    });

// What ranks may do at their own times without being out of step.
TEST(InStep, AreRanksThatAccumulateJoinAndTrainTwoModels) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel first(TwoLayers(0.0), group);
    DistributedDataParallel second(TwoLayers(1.0), group);
    optim::SGD one(first, {.lr = 0.1}), two(second, {.lr = 0.1});
    for (int update = 0; update < 3; ++update) {
      for (int pass = 0; pass <= group.rank(); ++pass) {  // as many as it likes
        const auto guard = first.no_sync();
        backward(first);
      }
      backward(first);
      one.step();
      for (int pass = 0; pass < 2; ++pass) {  // like a GAN's other network
        backward(second);
        two.step();
      }
    }
    {
      const auto join = first.join();
      for (int batches = 0; batches < 2 + group.rank(); ++batches) {
        backward(first);
        one.step();
      }
    }
    EXPECT_NO_THROW(backward(first));
    const c10::NoGradGuard no_grad;
    (void)first(batch());  // an evaluation
  });
}

}  // namespace
}  // namespace argosy::parallel
