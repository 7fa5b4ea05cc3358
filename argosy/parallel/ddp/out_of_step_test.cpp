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
  const char* named_of_divided_steps;
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
     "rank 1 begins backward pass 2 of update 3 while rank 0 begins update 4",
     "rank 1 begins backward pass 2 of update 3 while rank 0 calls optimizer.step()"},
    {"LeftOutBackward",
     [](auto& model, const auto& step, bool odd) {
       for (int pass = odd ? 1 : 0; pass < 2; ++pass) {
         backward(model);
       }
       step();
     },
     "rank 0 begins backward pass 2 of update 3 while rank 1 begins update 4",
     "rank 0 begins backward pass 2 of update 3 while rank 1 calls optimizer.step()"},
    {"OnePassMore",
     [](auto& model, const auto& step, bool odd) {
       for (int pass = 0; pass < (odd ? 3 : 2); ++pass) {
         backward(model);
       }
       step();
     },
     "rank 1 begins backward pass 3 of update 3 while rank 0 begins update 4",
     "rank 1 begins backward pass 3 of update 3 while rank 0 calls optimizer.step()"},
};

class OutOfStep
    : public ::testing::TestWithParam<std::tuple<const char*, const char*, const Mistake*>> {};

TEST_P(OutOfStep, IsNamedAtTheNextReduction) {
  const std::string backend = std::get<0>(GetParam());
  const std::string optimizer_kind = std::get<1>(GetParam());
  const Mistake* const mistake = std::get<2>(GetParam());
  const bool divided = optimizer_kind == "divided";
  const auto outcomes = try_ranks_over(backend, [&](const comm::Group& group) {
    const int rank = group.rank();
    DistributedDataParallel model(TwoLayers(0.0), group);
    optim::SGD ours(model, {.lr = 0.1});
    EXPECT_TRUE(!divided || model.divide_step(ours));
    torch::optim::SGD theirs(model.parameters(), 0.1);
    const std::function<void()> step = [&] {
      optimizer_kind == "theirs" ? (void)theirs.step() : ours.step();
    };
    for (int update = 1; update <= 6; ++update) {
      mistake->update(model, step, rank == 1 && update == 3);
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error,
                HasSubstr(divided ? mistake->named_of_divided_steps : mistake->named))
        << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr("did rank"));
    EXPECT_THAT(outcome.error, HasSubstr("no_sync()"));
  }
}

std::string name_of_mistake(const ::testing::TestParamInfo<OutOfStep::ParamType>& info) {
  const auto& [backend, optimizer_kind, mistake] = info.param;
  return std::string(backend) + "_" + optimizer_kind + "_" + mistake->name;
}

const auto kEachMistake = ::testing::Values(&kMistakes[0], &kMistakes[1], &kMistakes[2]);
/// Also where a hook says how a bucket travels.
TEST(OutOfStepWithAHook, IsNamedToo) {
  const std::vector<std::function<CommHook()>> hooks{average, fp16_compress, bf16_compress};
  for (const auto& hook : hooks) {
    const auto store = rendezvous::in_process_store();
    const auto outcomes = test::try_run_ranks(2, [&](int rank) {
      const comm::Group group = thread_group(store, rank, 2);
      DistributedDataParallel model(TwoLayers(0.0), group);
      model.register_comm_hook(hook());
      optim::SGD optimizer(model, {.lr = 0.1});
      for (int update = 1; update <= 6; ++update) {
        model(input_of(rank)).sum().backward();
        if (rank == 0 || update != 3) {
          optimizer.step();
        }
      }
    });
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_THAT(outcome.error, HasSubstr("did rank 1 skip optimizer.step()"))
          << describe(outcome);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes,
    OutOfStep,
    ::testing::Combine(::testing::Values("in_process", "gloo", "shm", "hierarchical"),
                       ::testing::Values("ours", "theirs"),
                       kEachMistake),
    name_of_mistake);
// What fleet does with more than 1 MiB of parameters where the ranks share memory.
INSTANTIATE_TEST_SUITE_P(DividedSteps,
                         OutOfStep,
                         ::testing::Combine(::testing::Values("in_process", "shm"),
                                            ::testing::Values("divided"),
                                            kEachMistake),
                         name_of_mistake);

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
