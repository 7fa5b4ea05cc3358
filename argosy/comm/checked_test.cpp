/// The checked mode: every rank learns who called something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::with_threads;

/// Every rank must get a CommError that names `culprit` and contains `text`.
void expect_mismatch(int n,
                     int culprit,
                     const std::string& text,
                     const std::function<void(Group&)>& call) {
  with_threads(n,
               [&](Group& world) {
                 at::Tensor warm_up = at::ones({2});
                 all_reduce(warm_up, world);
                 EXPECT_EQ(warm_up[0].item<float>(), n);
                 try {
                   call(world);
                   ADD_FAILURE() << "rank " << world.rank() << ": not noticed";
                 } catch (const CommError& e) {
                   EXPECT_THAT(e.what(), HasSubstr(text));
                   EXPECT_THAT(e.peers(), ElementsAre(culprit));
                 }
               },
               {.checked = true});
}

TEST(Checked, NamesWhoHasAnotherShape) {
  expect_mismatch(4,
                  2,
                  "rank 2 called all_reduce f32 [3, 4] sum, the others all_reduce f32 [4, 4] sum",
                  [](Group& world) {
                    all_reduce(at::ones({world.rank() == 2 ? 3 : 4, 4}), world);
                  });
}

TEST(Checked, NamesWhoHasAnotherType) {
  expect_mismatch(
      3,
      0,
      "rank 0 called broadcast f64 [2] root 1, the others broadcast f32 [2] root 1",
      [](Group& world) {
        broadcast(at::ones({2}, world.rank() == 0 ? at::kDouble : at::kFloat), world, {.root = 1});
      });
}

TEST(Checked, NamesWhoCallsAnotherOperation) {
  expect_mismatch(
      3, 1, "rank 1 called barrier, the others all_reduce f32 [2] sum", [](Group& world) {
        if (world.rank() == 1) {
          barrier(world);
        } else {
          all_reduce(at::ones({2}), world);
        }
      });
}

TEST(Checked, NamesWhoHasAnotherRootOrReduction) {
  expect_mismatch(
      3,
      2,
      "rank 2 called reduce f32 [2] sum root 1, the others reduce f32 [2] sum root 0",
      [](Group& world) { reduce(at::ones({2}), world, {.root = world.rank() == 2 ? 1 : 0}); });
  expect_mismatch(2,
                  1,
                  "rank 1 called all_reduce f32 [2] max, rank 0 all_reduce f32 [2] sum",
                  [](Group& world) {
                    all_reduce(at::ones({2}),
                               world,
                               {.op = world.rank() == 1 ? transport::ReduceOp::kMax
                                                        : transport::ReduceOp::kSum});
                  });
}

TEST(Checked, ALongShapeDiffersEvenBehindTheCut) {
  expect_mismatch(3, 1, "rank 1 called all_reduce f32 [1, 1", [](Group& world) {
    std::vector<int64_t> shape(120, 1);
    shape.back() = world.rank() == 1 ? 2 : 1;
    all_reduce(at::ones(shape), world);
  });
}

TEST(Checked, NamesWhoIsElsewhereInTheTraining) {
  const auto reduce_at = [](uint32_t update, Group& world) {
    all_reduce(at::ones({2}), world, {.place = {.update = update, .pass = 1}});
  };
  expect_mismatch(3, 2, "rank 0 begins update 4 while rank 2 begins update 5", [&](Group& world) {
    reduce_at(world.rank() == 2 ? 5 : 4, world);
  });
  const auto reduce_unit = [](uint32_t unit, Group& world) {
    all_reduce(at::ones({2}), world, {.place = {.update = 1, .pass = 1, .unit = unit}});
  };
  expect_mismatch(2,
                  1,
                  "rank 1 uses unit 3 of its divided parameters while rank 0 uses unit 2",
                  [&](Group& world) { reduce_unit(world.rank() == 1 ? 3 : 2, world); });
  expect_mismatch(2,
                  1,
                  "rank 1 called all_reduce f32 [2] sum for a wrapped model, "
                  "rank 0 all_reduce f32 [2] sum",
                  [&](Group& world) { reduce_at(world.rank() == 1 ? 1 : 0, world); });
}

TEST(Checked, NamesWhoMakesAnotherGroup) {
  expect_mismatch(
      4, 1, "rank 1 called new_group [0, 1], the others new_group [0, 1, 2]", [](Group& world) {
        (void)world.new_group(world.rank() == 1 ? std::vector<int>{0, 1}
                                                : std::vector<int>{0, 1, 2});
      });
}

TEST(Checked, NamesWhoDoesNotSplit) {
  expect_mismatch(3, 2, "rank 2 called barrier, the others split", [](Group& world) {
    if (world.rank() == 2) {
      barrier(world);
    } else {
      (void)world.split({.color = world.rank()});
    }
  });
}

TEST(Checked, GivesTheWorldRanksOfASubGroup) {
  with_threads(4,
               [](Group& world) {
                 const Group group = world.new_group({3, 1, 2});
                 if (group.rank() < 0) {
                   return;
                 }
                 try {
                   all_reduce(at::ones({world.rank() == 1 ? 3 : 4}), group);
                   ADD_FAILURE() << "not noticed";
                 } catch (const CommError& e) {
                   EXPECT_THAT(e.what(),
                               AllOf(HasSubstr("rank 1 (world rank 1) called all_reduce f32 [3]"),
                                     HasSubstr("group \"world.0\"")));
                   EXPECT_THAT(e.what(),
                               HasSubstr(world.rank() == 3   ? "rank 0/3 (world rank 3)"
                                         : world.rank() == 2 ? "rank 2/3 (world rank 2)"
                                                             : "rank 1/3 (world rank 1)"));
                   EXPECT_THAT(e.peers(), ElementsAre(1));
                 }
               },
               {.checked = true});
}

TEST(Checked, LetsEqualCallsThrough) {
  with_threads(3,
               [](Group& world) {
                 at::Tensor t = at::ones({2});
                 all_reduce(t, world);
                 EXPECT_EQ(all_gather_object(std::string(3U + world.rank(), 'x'), world)[2].size(),
                           5U);
                 const auto rows = all_gather_uneven(at::ones({world.rank(), 2}), world);
                 EXPECT_EQ(rows.size(0), 3);
                 std::vector<at::Tensor> list;
                 for (int peer = 0; peer < 3; ++peer) {
                   list.push_back(at::ones({world.rank() + peer}));
                 }
                 all_to_all(list, list, world);
                 const Group child = world.split({.color = 0});
                 EXPECT_EQ(world.new_group({0, 2}).size(), 2);
                 all_reduce(t, child);
                 EXPECT_EQ(t[0].item<float>(), 9);
                 barrier(world);
               },
               {.checked = true});
}

}  // namespace
}  // namespace argosy::comm
