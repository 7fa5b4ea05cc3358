#include "argosy/parallel/mesh.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::parallel {
namespace {

using comm::testing::with_threads;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What all ranks of a group add up to when each brings its rank of the world.
int64_t sum_of_ranks(const comm::Group& group, int rank) {
  const at::Tensor value = at::full({}, rank, at::kLong);
  comm::all_reduce(value, group);
  return value.item<int64_t>();
}

std::string refusal(const comm::Group& world, const std::vector<MeshAxis>& axes) {
  return test::error_text<UsageError>([&] { (void)Mesh(world, axes); });
}

TEST(Mesh, NumbersRanksRowByRow) {
  with_threads(8, [](comm::Group& world) {
    const Mesh mesh(world, {{"dp", 2}, {"pp", 1}, {"sharding", 2}, {"mp", -1}});
    EXPECT_EQ(mesh.axes().back(), (MeshAxis{"mp", 2}));
    EXPECT_THAT(mesh.coordinates(6), ElementsAre(1, 0, 1, 0));
    EXPECT_EQ(mesh.coordinate("dp"), world.rank() / 4);
    EXPECT_EQ(mesh.coordinate("mp"), world.rank() % 2);
    EXPECT_EQ(mesh.rank_at({{"dp", 1}, {"sharding", 0}, {"mp", 1}}), 5);
    EXPECT_EQ(mesh.rank_at({}), world.rank());
    if (world.rank() == 5) {
      EXPECT_THAT(mesh.ranks_along({"sharding"}), ElementsAre(5, 7));
      EXPECT_THAT(mesh.ranks_along({"mp", "dp"}), ElementsAre(0, 1, 4, 5));
      EXPECT_THAT(mesh.ranks_along({"pp"}), ElementsAre(5));
    }
    EXPECT_EQ(mesh.describe(),
              "dp        2  0, 4 | 1, 5 | 2, 6 | 3, 7\n"
              "sharding  2  0, 2 | 1, 3 | 4, 6 | 5, 7\n"
              "mp        2  0, 1 | 2, 3 | 4, 5 | 6, 7\n");
  });
}

/// Also in another order on each rank, and not on all of them.
TEST(Mesh, MakesAGroupWhenItsMembersAskForIt) {
  with_threads(8, [](comm::Group& world) {
    const Mesh mesh(world, {{"dp", 2}, {"sharding", 4}});
    const int row = world.rank() / 4, column = world.rank() % 4;
    const auto check_row = [&] {
      EXPECT_EQ(sum_of_ranks(mesh.group("sharding"), world.rank()), 4 * 4 * row + 6);
      EXPECT_EQ(mesh.group("sharding").rank(), mesh.coordinate("sharding"));
    };
    if (row == 0) {
      check_row();
    }
    if (column == 2) {
      EXPECT_EQ(sum_of_ranks(mesh.group("dp"), world.rank()), 2 + 6);
    }
    if (row == 1) {
      check_row();
    }
    const Mesh copy = mesh;
    EXPECT_EQ(copy.group("sharding").name(), mesh.group("sharding").name()) << "one group";
    EXPECT_EQ(sum_of_ranks(mesh.group_along({"dp", "sharding"}), world.rank()), 28);
    EXPECT_EQ(mesh.group_along({"dp", "sharding"}).name(), world.name());
    const Mesh again(world, {{"dp", 2}, {"sharding", 4}});
    EXPECT_NE(again.group("dp").name(), mesh.group("dp").name());
  });
}

TEST(Mesh, HasMeshesOfSomeOfItsAxes) {
  with_threads(8, [](comm::Group& world) {
    const Mesh mesh(world, {{"dp", 2}, {"pp", 2}, {"mp", 2}});
    const Mesh part = mesh.submesh({"mp", "dp"});
    EXPECT_THAT(part.axes(), ElementsAre(MeshAxis{"dp", 2}, MeshAxis{"mp", 2}));
    EXPECT_EQ(part.coordinate("mp"), mesh.coordinate("mp"));
    EXPECT_EQ(part.coordinate("dp"), mesh.coordinate("dp"));
    const int64_t first = mesh.rank_at({{"dp", 0}, {"mp", 0}});
    EXPECT_EQ(sum_of_ranks(part.ranks(), world.rank()), first * 4 + 1 + 4 + 5);
    EXPECT_EQ(sum_of_ranks(part.group("dp"), world.rank()),
              sum_of_ranks(mesh.group("dp"), world.rank()));
  });
}

TEST(Mesh, OfOneRankHasAllAxes) {
  with_threads(1, [](comm::Group& world) {
    const Mesh mesh(world, {{"dp", -1}, {"sharding", 1}});
    EXPECT_EQ(mesh.size("dp"), 1);
    EXPECT_EQ(mesh.group("sharding").size(), 1);
    EXPECT_THAT(mesh.describe(), IsEmpty());
  });
}

TEST(Mesh, RefusesAxesThatDoNotFit) {
  with_threads(6, [](comm::Group& world) {
    EXPECT_THAT(
        refusal(world, {{"dp", 4}, {"mp", 2}}),
        HasSubstr("dp=4, mp=2 makes 8 ranks, and there are 6. Start 8 (argosy launch -n 8)"));
    EXPECT_THAT(refusal(world, {{"dp", 3}, {"mp", 1}}),
                HasSubstr("dp=3 makes 3 ranks, and there are 6. Start 3 (argosy launch -n 3), or"));
    constexpr int64_t kMany = int64_t{1} << 32;
    EXPECT_THAT(refusal(world, {{"dp", kMany}, {"mp", kMany}, {"pp", -1}}),
                HasSubstr("that is more ranks than there can be"));
    EXPECT_THAT(refusal(world, {{"dp", -1}, {"mp", 4}}),
                HasSubstr("mp=4 needs a multiple of 4 ranks, and there are 6"));
    EXPECT_THAT(refusal(world, {{"dp", -1}, {"mp", -1}}), HasSubstr("both dp and mp are -1"));
    EXPECT_THAT(refusal(world, {{"dp", 6}, {"dp", 1}}), HasSubstr("two axes \"dp\""));
    EXPECT_THAT(refusal(world, {{"dp", 0}}), HasSubstr("axis dp: expected a number"));
    EXPECT_THAT(refusal(world, {{"", 6}}), HasSubstr("axis 0 has no name"));
    EXPECT_THAT(refusal(world, {}), HasSubstr("no axes given"));
    EXPECT_THAT(refusal(world, {{"dp", 1}, {"mp", 1}}), HasSubstr("dp=1, mp=1 makes 1 ranks"));
    const Mesh mesh(world, {{"dp", 3}, {"pp", 1}, {"mp", 2}});
    EXPECT_THAT(test::error_text<UsageError>([&] { (void)mesh.group("tp"); }),
                HasSubstr("there is no axis \"tp\". This mesh has dp=3, pp=1, mp=2"));
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  (void)mesh.rank_at({{"dp", 3}});
                }),
                HasSubstr("axis dp: expected a coordinate from 0 to 2, got 3"));
    EXPECT_THAT(test::error_text<UsageError>([&] { (void)mesh.coordinates(6); }),
                HasSubstr("rank 6 is not in the mesh"));
    EXPECT_THAT(test::error_text<UsageError>([&] { (void)mesh.submesh({}); }),
                HasSubstr("submesh() of no axes"));
    EXPECT_THAT(test::error_text<UsageError>([] { (void)Mesh().axes(); }), HasSubstr("is empty"));
  });
}

TEST(Mesh, NamesRanksWithOtherAxes) {
  with_threads(4, [](comm::Group& world) {
    EXPECT_THAT(refusal(world, {{"dp", 2}, {"mp", world.rank() == 3 ? -1 : 2}}),
                AllOf(HasSubstr("the axes differ"), HasSubstr("rank 3: mp -1, rank 0: 2")));
  });
}

/// What making a mesh tells, of ranks on these hosts.
std::string told_of(const std::vector<MeshAxis>& axes, const std::vector<int>& hosts) {
  ::testing::internal::CaptureStderr();
  with_threads(static_cast<int>(hosts.size()),
               [&](comm::Group& world) { (void)Mesh(world, axes); },
               {.hosts = hosts});
  return ::testing::internal::GetCapturedStderr();
}

TEST(Mesh, WarnsOfAxesThatLeaveAHost) {
  EXPECT_EQ(told_of({{"dp", 2}, {"mp", 2}}, {0, 0, 1, 1}), "");
  EXPECT_THAT(told_of({{"dp", 1}, {"mp", 4}}, {0, 0, 1, 1}),
              HasSubstr("the ranks 0-3 along mp are on several hosts"));
  EXPECT_EQ(told_of({{"dp", 2}, {"sharding", 2}}, {0, 0, 1, 1}), "");
  EXPECT_EQ(told_of({{"sharding", 4}}, {0, 0, 1, 1}), "") << "no host has room for four";
  EXPECT_THAT(told_of({{"dp", 3}, {"sharding", 2}}, {0, 0, 0, 1, 1, 1}),
              HasSubstr("the ranks 2, 3 along sharding are on several hosts"));
  EXPECT_THAT(told_of({{"sharding", 2}, {"dp", 2}}, {0, 0, 1, 1}),
              HasSubstr("the ranks 0, 2 along sharding are on several hosts"));
}

}  // namespace
}  // namespace argosy::parallel
