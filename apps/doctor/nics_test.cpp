#include "apps/doctor/nics.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::doctor {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Nics : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"NCCL_IB_HCA", "NCCL_SOCKET_IFNAME", "ARGOSY_IFNAME"}) {
      ::unsetenv(name);
    }
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((root_.path() / file).parent_path());
    std::ofstream(root_.path() / file) << text << "\n";
  }
  /// A device at a path below /sys/devices; the kernel's links lead there.
  void device(const std::string& link, const std::string& place, int node) const {
    write("sys/devices/" + place + "/numa_node", std::to_string(node));
    fs::create_directories((root_.path() / link).parent_path());
    fs::create_directory_symlink(root_.path() / "sys/devices" / place, root_.path() / link);
  }
  void gpu(const std::string& place, int node) {
    gpus_.push_back({.address = fs::path(place).filename()});
    device("sys/bus/pci/devices/" + gpus_.back().address, place, node);
  }
  void nic(const std::string& name,
           const std::string& place,
           int node,
           const std::string& state = "4: ACTIVE",
           const std::string& link = "InfiniBand") const {
    const std::string folder = "sys/class/infiniband/" + name;
    device(folder + "/device", place, node);
    write(folder + "/ports/1/state", state);
    write(folder + "/ports/1/link_layer", link);
    write(folder + "/ports/1/rate", "400 Gb/sec (4X NDR)");
  }
  [[nodiscard]] Finding finding(const std::string& interface = "ens1") const {
    return nics_finding(root(), gpus_, interface);
  }
  [[nodiscard]] std::vector<std::string> nearest(size_t gpu) const {
    return nearest_nics(root(), gpus_[gpu], active_nics(root()));
  }
  [[nodiscard]] std::string root() const { return root_.path().string(); }

 private:
  const test::TempDir root_;
  std::vector<os::Gpu> gpus_;
};

/// Two boards, each with a switch that has a GPU and an adapter.
class NicsOfTwoBoards : public Nics {
 protected:
  void SetUp() override {
    Nics::SetUp();
    gpu("pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", 0);
    gpu("pci0000:bb/0000:bb:01.0/0000:bc:00.0/0000:bd:00.0", 1);
    nic("mlx5_0", "pci0000:15/0000:15:01.0/0000:16:01.0/0000:18:00.0", 0);
    nic("mlx5_1", "pci0000:15/0000:15:05.0/0000:1a:00.0", 0);
    nic("mlx5_3", "pci0000:bb/0000:bb:01.0/0000:bc:01.0/0000:be:00.0", 1);
  }
};

TEST_F(NicsOfTwoBoards, NearestAreThoseBehindTheSameBridge) {
  EXPECT_THAT(nearest(0), ElementsAre("mlx5_0"));
  EXPECT_THAT(nearest(1), ElementsAre("mlx5_3"));
  EXPECT_THAT(nearest_nics(root(), {}, active_nics(root())), IsEmpty());
  EXPECT_THAT(nearest_nics(root(), {.address = "0000:ff:00.0"}, active_nics(root())), IsEmpty());
}

TEST_F(NicsOfTwoBoards, AreProposedToNccl) {
  EXPECT_EQ(finding().text,
            "mlx5_0 (InfiniBand, 400 Gb/sec) next to GPU 0; mlx5_1 (InfiniBand, 400 Gb/sec); "
            "mlx5_3 (InfiniBand, 400 Gb/sec) next to GPU 1");
  EXPECT_EQ(finding().advice,
            "for jobs of several nodes: export NCCL_IB_HCA==mlx5_0,mlx5_3 "
            "NCCL_SOCKET_IFNAME==ens1");
  ::setenv("NCCL_IB_HCA", "mlx5_1", 1);
  EXPECT_THAT(finding().text, HasSubstr("; NCCL_IB_HCA=mlx5_1 is set"));
  EXPECT_EQ(finding("").advice, "");
}

TEST_F(NicsOfTwoBoards, ThatAreDownOrCarryOtherThingsAreLeftOut) {
  nic("mlx5_2", "pci0000:15/0000:15:01.0/0000:16:01.0/0000:18:00.1", 0, "1: DOWN");
  nic("mlx5_bond", "pci0000:bb/0000:bb:01.0/0000:bc:01.0/0000:be:00.1", 1, "4: ACTIVE", "Ethernet");
  EXPECT_THAT(finding().text, Not(HasSubstr("mlx5_2")));
  EXPECT_THAT(finding().advice, HasSubstr("NCCL_IB_HCA==mlx5_0,mlx5_3 "));
}

TEST_F(Nics, OfTheSameNumaNodeAreNearWhereNoBridgeIsShared) {
  gpu("pci0000:40/0000:40:01.0/0000:41:00.0", 1);
  nic("irdma0", "pci0000:50/0000:51:00.0", 0, "4: ACTIVE", "Ethernet");
  nic("irdma1", "pci0000:60/0000:61:00.0", 1, "4: ACTIVE", "Ethernet");
  EXPECT_THAT(nearest(0), ElementsAre("irdma1"));
  EXPECT_THAT(finding().text, HasSubstr("irdma1 (Ethernet, 400 Gb/sec) next to GPU 0"));
}

TEST_F(Nics, ThatAreNotThereLeaveTcp) {
  gpu("pci0000:40/0000:41:00.0", 0);
  EXPECT_THAT(finding().text, HasSubstr("neither InfiniBand nor RoCE"));
  EXPECT_EQ(finding().advice, "for jobs of several nodes: export NCCL_SOCKET_IFNAME==ens1");
}

TEST_F(Nics, TheInterfaceIsTheOneThatArgosyTakes) {
  EXPECT_EQ(interface_of("", "127.0.0.1"), "lo");
  EXPECT_EQ(interface_of("", "0.0.0.0"), "");
  EXPECT_NE(interface_between_hosts(), "lo");
  EXPECT_EQ(interface_between_hosts("127.0.0.1"), "");
  ::setenv("ARGOSY_IFNAME", "ib0", 1);
  EXPECT_EQ(interface_between_hosts("127.0.0.1"), "ib0");
}

}  // namespace
}  // namespace argosy::doctor
