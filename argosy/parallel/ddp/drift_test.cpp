// Ranks that come to hold different things, train on the same samples, or have gradients that are
// not finite.
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "argosy/base/error.h"
#include "argosy/base/even_part.h"
#include "argosy/base/strings.h"
#include "argosy/comm/init.h"
#include "argosy/optim/optim.h"
#include "argosy/parallel/ddp/ddp_test_support.h"

namespace argosy::parallel {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

/// The lines of the log of `work` that contain `text`.
std::vector<std::string> log_lines(const std::string& text, const std::function<void()>& work) {
  ::testing::internal::CaptureStderr();
  work();
  std::vector<std::string> found;
  for (std::string& line : strings::split(::testing::internal::GetCapturedStderr(), '\n')) {
    if (line.find(text) != std::string::npos) {
      found.push_back(std::move(line));
    }
  }
  return found;
}

/// What rank 1 alone does between two passes, and what the error says of it.
struct Drift {
  const char* name;
  void (*cause)(DistributedDataParallel<TwoLayers>& model, optim::SGD& optimizer);
  const char* named;
  bool divides = false;  ///< divide_step() tells the wrapper of the optimizer
};

const Drift kDrifts[] = {
    {"LearningRate",
     [](auto& /*model*/, auto& optimizer) { optimizer.set_lr(0.5); },
     "before update 4 options differ between ranks of group \"world\": rank 1: learning rate of "
     "group 0 0.5, rank 0: 0.1",
     true},
    {"LearningRateOfAnUnknownOptimizer",
     [](auto& /*model*/, auto& optimizer) {
       optimizer.set_lr(0.5);
       optimizer.step();
     },
     "before update 4 4 of 4 parameters differ between ranks of group \"world\": rank 1: "
     "first.weight[0, 0] "},
    {"OneWeight",
     [](auto& model, auto& /*optimizer*/) {
       torch::NoGradGuard no_grad;
       model->second->weight[1][0] = 7;  // one of the four elements that are always looked at
     },
     "rank 1: second.weight[1, 0] 7, rank 0: "},
    {"Clipping",
     [](auto& model, auto& optimizer) {
       optim::clip_grad_norm_(model, 1e-3);
       optimizer.step();
     },
     "parameters differ"},
};

class DriftedRanks : public ::testing::TestWithParam<std::tuple<const char*, const Drift*>> {};

TEST_P(DriftedRanks, AreNamedAtTheNextPass) {
  const std::string backend = std::get<0>(GetParam());
  const Drift& drift = *std::get<1>(GetParam());
  const bool two_hosts = backend == "hierarchical";
  const auto outcomes = try_ranks_over(backend, [&](const comm::Group& group) {
    const int rank = group.rank();
    DistributedDataParallel model(TwoLayers(0.0), group);
    optim::SGD optimizer(model, {.lr = 0.1});
    if (drift.divides) {
      model.divide_step(optimizer);
    }
    for (int update = 1; update <= 6; ++update) {
      model(input_of(rank)).sum().backward();
      optimizer.step();
      if (rank == 1 && update == 3) {
        drift.cause(model, optimizer);
      }
    }
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("before update 4"), HasSubstr(drift.named)))
        << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr(".check_drift = false"));
    if (two_hosts && drift.divides) {
      EXPECT_THAT(outcome.error, Not(HasSubstr("rank 2"))) << "they have rank 0's";
    }
  }
}

const auto kEachDrift = ::testing::Values(&kDrifts[0], &kDrifts[1], &kDrifts[2], &kDrifts[3]);
std::string name_of(const ::testing::TestParamInfo<DriftedRanks::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param)->name;
}
INSTANTIATE_TEST_SUITE_P(Each,
                         DriftedRanks,
                         ::testing::Combine(::testing::Values("in_process", "shm", "hierarchical"),
                                            kEachDrift),
                         name_of);

/// One element anywhere is found when its 64th has its turn.
TEST(Drift, OneElementIsFoundWithin64Updates) {
  for (const int64_t odd : {int64_t{1}, int64_t{333}, int64_t{998}}) {
    on_ranks(2, [&](comm::Group& group) {
      TwoLayers layers(0.0, 500);
      DistributedDataParallel model(layers, group);
      optim::SGD optimizer(model, {.lr = 0.0});  // nothing spreads it
      int update = 0;
      const std::string error = error_of([&] {
        for (; update < 100; ++update) {
          model(input_of(group.rank())).sum().backward();
          optimizer.step();
          torch::NoGradGuard no_grad;
          model->first->bias.add_(1);  // an update that is seen
          if (group.rank() == 1 && update == 0) {
            model->second->weight.view(-1)[odd] += 1e-9;
          }
        }
      });
      EXPECT_THAT(error,
                  HasSubstr("second.weight[" + std::to_string(odd / 500) + ", " +
                            std::to_string(odd % 500) + "]"));
      EXPECT_LE(update, 64);
    });
  }
}

TEST(Drift, IsLeftAloneWhereItIsWanted) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group, {.check_drift = false});
    optim::SGD optimizer(model, {.lr = 0.1 * (1 + group.rank())});
    for (int update = 0; update < 3; ++update) {
      model(input_of(group.rank())).sum().backward();
      optimizer.step();
    }
    const auto all = comm::all_gather(model.parameters()[0].detach(), group);
    EXPECT_FALSE(at::equal(all[0], all[1]));
  });
}

/// All ranks must agree whether they compare.
TEST(Drift, OptionMustBeTheSame) {
  on_ranks(2, [](comm::Group& group) {
    EXPECT_THAT(error_of([&] {
                  DistributedDataParallel model(
                      TwoLayers(0.0), group, {.check_drift = group.rank() == 0});
                }),
                HasSubstr("rank 1: option check_drift false, rank 0: true"));
  });
}

TEST(Drift, OfTheScaleOfTheLossIsNamed) {
  on_ranks(2, [](comm::Group& group) {
    DistributedDataParallel model(TwoLayers(0.0), group);
    optim::SGD optimizer(model, {.lr = 0.1});
    optim::GradScaler scaler({.init_scale = group.rank() == 0 ? 2.0 : 4.0});
    EXPECT_THAT(error_of([&] { scaler.scale(model(input_of(group.rank())).sum()).backward(); }),
                HasSubstr("rank 1: scale of the loss 4, rank 0: 2"));
    scaler.update(1.0);  // this thread's losses are not scaled any more
  });
}

// --- The same samples --------------------------------------------------------------------------

/// Updates of a model whose virtual ranks, numbered from 0, have the batches that `seed_of` says.
void train(comm::Group& group, int64_t virtual_ranks, int (*seed_of)(int64_t leaf)) {
  DistributedDataParallel model(TwoLayers(0.0), group, {.virtual_ranks = virtual_ranks});
  optim::SGD optimizer(model, {.lr = 0.1});
  const IndexRange mine = even_part(virtual_ranks, group.size(), group.rank());
  for (int update = 0; update < 3; ++update) {
    for (int64_t leaf = 0; leaf < mine.size(); ++leaf) {
      model.begin({.leaf = leaf, .leaves = mine.size()});
      model(values({4, 3}, 10.0 + seed_of(mine.begin + leaf))).sum().backward();
    }
    model.end_update();
    optimizer.step();
    optimizer.zero_grad();
  }
}

TEST(SameSamples, AreToldOnceByTheFirstRank) {
  for (const auto& each : {std::pair(2, 2), {2, 4}, {1, 3}, {3, 6}, {2, 3}, {4, 2}}) {
    const int processes = each.first;
    const int virtual_ranks = each.second;
    const auto lines = log_lines("all ranks trained on the same samples", [&] {
      on_ranks(processes,
               [&](comm::Group& group) { train(group, virtual_ranks, [](int64_t) { return 0; }); });
    });
    EXPECT_THAT(lines, SizeIs(1)) << virtual_ranks << " on " << processes;
  }
}

TEST(SameSamples, AreNotThereIfOneVirtualRankHasOthers) {
  for (const auto& each : {std::pair(2, 2), {2, 4}, {1, 3}, {3, 6}, {2, 3}, {4, 2}}) {
    const int processes = each.first;
    const int virtual_ranks = each.second;
    const auto lines = log_lines("the same samples", [&] {
      on_ranks(processes, [&](comm::Group& group) {
        train(group, virtual_ranks, [](int64_t leaf) { return leaf == 1 ? 1 : 0; });
      });
    });
    EXPECT_THAT(lines, IsEmpty()) << virtual_ranks << " on " << processes;
  }
}

TEST(SameSamples, GradientsOfZeroSayNothing) {
  const auto lines = log_lines("the same samples", [] {
    on_ranks(2, [](comm::Group& group) {
      DistributedDataParallel model(TwoLayers(0.0), group);
      (model(input_of(0)).sum() * 0.0).backward();
    });
  });
  EXPECT_THAT(lines, IsEmpty());
}

// --- Gradients that are not finite -------------------------------------------------------------

/// Three updates, in which the batch of `odd` in the second one is infinite.
void train_with_infinity(comm::Group& group,
                         const DdpOptions& options,
                         int64_t odd,
                         optim::GradScaler* scaler = nullptr) {
  DistributedDataParallel model(TwoLayers(0.0), group, options);
  optim::SGD optimizer(model, {.lr = 0.1});
  const int64_t leaves = std::max<int64_t>(1, options.virtual_ranks / group.size());
  for (int update = 1; update <= 3; ++update) {
    for (int64_t leaf = 0; leaf < leaves; ++leaf) {
      model.begin({.leaf = leaf, .leaves = leaves});
      const int64_t number = group.rank() * leaves + leaf;
      at::Tensor input = input_of(static_cast<int>(number));
      if (number == odd && update == 2) {
        input[0][1] = std::numeric_limits<double>::infinity();
      }
      const at::Tensor loss = model(input).sum();
      (scaler != nullptr ? scaler->scale(loss) : loss).backward();
    }
    model.end_update();
    if (scaler != nullptr) {
      scaler->step(optimizer);
      scaler->update();
    } else {
      optimizer.step();
    }
    optimizer.zero_grad();
  }
}

TEST(NotFinite, IsToldOnceWithRankParameterAndUpdate) {
  const auto lines = log_lines("the gradient of", [] {
    on_ranks(2, [](comm::Group& group) { train_with_infinity(group, {}, 1); });
  });
  // It takes inf * (1 - tanh(inf)^2). In update 3 all gradients are NaN on all ranks.
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr(
                  "update 2: the gradient of first.weight[0, 1] is NaN on rank 1. Averaging")));
}

TEST(NotFinite, OfAVirtualRankIsItsOwn) {
  const auto lines = log_lines("update 2: ", [] {
    on_ranks(2, [](comm::Group& group) { train_with_infinity(group, {.virtual_ranks = 6}, 4); });
  });
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("the gradient of first.weight[0, 1] is NaN on virtual "
                                    "rank 4 on rank 1.")));
}

TEST(NotFinite, IsFoundByAProcessThatIsAlone) {
  on_ranks(1, [](comm::Group& group) {
    EXPECT_THAT(error_of<DataError>([&] {
                  train_with_infinity(group, {.on_nonfinite = NonfiniteGradient::kStop}, 0);
                }),
                HasSubstr("the gradient of first.weight[0, 1] is NaN on rank 0"));
    const auto lines = log_lines("is NaN on", [&] { train_with_infinity(group, {}, 0); });
    EXPECT_THAT(lines, SizeIs(1));
  });
}

TEST(NotFinite, StopsBeforeTheUpdateWhereThatIsWanted) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    comm::Group group = thread_group(store, rank, 2, 2s);
    train_with_infinity(group, {.on_nonfinite = NonfiniteGradient::kStop}, 1);
  });
  EXPECT_THAT(outcomes[1].error,
              HasSubstr("update 2: the gradient of first.weight[0, 1] is NaN on rank 1. The "
                        "weights are those before this update"));
  EXPECT_FALSE(outcomes[0].error.empty()) << "it cannot go on alone";
}

TEST(NotFinite, IsLeftAloneWhereThatIsWanted) {
  const auto lines = log_lines("is nan on", [] {
    on_ranks(2, [](comm::Group& group) {
      train_with_infinity(group, {.on_nonfinite = NonfiniteGradient::kIgnore}, 1);
    });
  });
  EXPECT_THAT(lines, IsEmpty());
}

TEST(NotFinite, IsTheScalersWhereThereIsOne) {
  on_ranks(2, [](comm::Group& group) {
    optim::GradScaler scaler({.init_scale = 4.0});
    train_with_infinity(group, {.on_nonfinite = NonfiniteGradient::kStop}, 1, &scaler);
    EXPECT_EQ(scaler.get_scale(), 2.0) << "it has skipped one update";
  });
}

}  // namespace
}  // namespace argosy::parallel
