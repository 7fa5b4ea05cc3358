#include "argosy/os/topology.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::os {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

/// Two sockets with two nodes each, two cores in each node, two hardware threads in each core: CPU
/// n and n + 8 share a core, as Linux numbers them.
std::vector<CpuPlace> machine() {
  std::vector<CpuPlace> places;
  for (int cpu = 0; cpu < 16; ++cpu) {
    const int core = cpu % 8;
    places.push_back({.cpu = cpu, .core = core, .package = core / 4, .node = core / 2});
  }
  return places;
}

TEST(ShareOut, GivesWholeCoresAndNeighbours) {
  EXPECT_THAT(share_out(machine(), 4, CpuBinding::kCores),
              ElementsAre(ElementsAre(0, 1, 8, 9),
                          ElementsAre(2, 3, 10, 11),
                          ElementsAre(4, 5, 12, 13),
                          ElementsAre(6, 7, 14, 15)));
  const auto three = share_out(machine(), 3, CpuBinding::kCores);
  EXPECT_EQ(three[0].size() + three[1].size() + three[2].size(), 16U);
  EXPECT_EQ(three[0].size(), 4U);
}

TEST(ShareOut, GivesANodeOrASocket) {
  EXPECT_THAT(share_out(machine(), 8, CpuBinding::kNuma)[3], ElementsAre(2, 3, 10, 11));
  EXPECT_THAT(share_out(machine(), 2, CpuBinding::kNuma)[1], ElementsAre(4, 5, 12, 13));
  EXPECT_THAT(share_out(machine(), 3, CpuBinding::kSocket)[2],
              ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
}

TEST(ShareOut, BindsNobodyWhereThereIsNotEnough) {
  EXPECT_THAT(share_out(machine(), 9, CpuBinding::kCores), Each(IsEmpty()));
  EXPECT_THAT(share_out(machine(), 2, CpuBinding::kNone), Each(IsEmpty()));
  EXPECT_THAT(share_out({}, 2, CpuBinding::kNuma), Each(IsEmpty()));
}

TEST(ShareOutNear, DividesTheProcessorsOfADeviceAmongItsProcesses) {
  const std::vector<int> first{0, 1, 8, 9};
  const std::vector<int> third{4, 5, 12, 13};
  const auto shared = [&](CpuBinding binding) {
    return share_out_near(machine(), {third, first, third}, binding);
  };
  EXPECT_THAT(shared(CpuBinding::kCores),
              ElementsAre(ElementsAre(4, 12), ElementsAre(0, 1, 8, 9), ElementsAre(5, 13)));
  EXPECT_THAT(
      shared(CpuBinding::kNuma),
      ElementsAre(ElementsAreArray(third), ElementsAreArray(first), ElementsAreArray(third)));
  EXPECT_THAT(shared(CpuBinding::kSocket)[0], ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
}

TEST(ShareOutNear, BindsNobodyWhereAPlaceIsNotKnownOrTooSmall) {
  EXPECT_THAT(share_out_near(machine(), {{0, 8}, {}}, CpuBinding::kNuma), Each(IsEmpty()));
  EXPECT_THAT(share_out_near(machine(), {{0, 8}, {99}}, CpuBinding::kNuma), Each(IsEmpty()));
  EXPECT_THAT(share_out_near(machine(), {{0, 8}, {0, 8}}, CpuBinding::kCores), Each(IsEmpty()));
  EXPECT_THAT(share_out_near(machine(), {{0, 8}}, CpuBinding::kNone), Each(IsEmpty()));
}

TEST(ShareOutNear, BindsNobodyWherePlacesAreInPartAnothers) {
  const std::vector<int> first{0, 1, 8, 9};
  const std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  for (const CpuBinding binding : {CpuBinding::kCores, CpuBinding::kNuma, CpuBinding::kSocket}) {
    EXPECT_THAT(share_out_near(machine(), {first, all}, binding), Each(IsEmpty()));
  }
  // Threads of the same cores.
  EXPECT_THAT(share_out_near(machine(), {{0, 1}, {8, 9}}, CpuBinding::kCores), Each(IsEmpty()));
  // Two nodes of one socket: both have all of it.
  EXPECT_THAT(share_out_near(machine(), {first, {2, 3, 10, 11}}, CpuBinding::kSocket),
              Each(ElementsAre(0, 1, 2, 3, 8, 9, 10, 11)));
}

TEST(FewestCores, AreThoseOfTheProcessThatHasLeast) {
  EXPECT_EQ(fewest_cores(machine(), {{0, 1, 8, 9}, {2, 3, 4, 10, 11, 12}}), 2);
  const std::vector<int> socket{0, 1, 2, 3, 8, 9, 10, 11};
  EXPECT_EQ(fewest_cores(machine(), {socket, socket}), 2);
  EXPECT_EQ(fewest_cores(machine(), {socket, socket, socket}), 1) << "four thirds of a core";
  EXPECT_EQ(fewest_cores(machine(), {socket, socket, socket, socket, socket}), 1);
  EXPECT_EQ(
      fewest_cores(machine(), {{0, 8, 1, 9, 2, 10}, {0, 8, 1, 9, 2, 10}, {0, 8, 1, 9, 2, 10}}), 1)
      << "three thirds";
}

TEST(CpuPlaces, AreReadFromTheKernelsFiles) {
  const test::TempDir sysfs;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((sysfs.path() / path).parent_path());
    std::ofstream(sysfs.path() / path) << text;
  };
  write("cpu/cpu3/topology/thread_siblings_list", "1,3\n");
  write("cpu/cpu3/topology/physical_package_id", "1\n");
  write("node/node0/cpulist", "0-1\n");
  write("node/node1/cpulist", "2-3\n");
  write("node/possible", "0-1\n");
  const auto places = cpu_places({0, 3}, sysfs.path().string());
  EXPECT_EQ(places[0].core, 0);
  EXPECT_EQ(places[1].core, 1);
  EXPECT_EQ(places[1].package, 1);
  EXPECT_EQ(places[1].node, 1);
}

TEST(CpuPlaces, OfThisMachineCoverTheAffinityMask) {
  EXPECT_FALSE(affinity_cpus().empty());
  EXPECT_EQ(cpu_places(affinity_cpus()).size(), affinity_cpus().size());
}

}  // namespace
}  // namespace argosy::os
