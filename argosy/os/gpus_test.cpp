#include "argosy/os/gpus.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FindGpus : public testing::Test {
 protected:
  using Variables = std::map<std::string, std::string>;

  void write(const std::string& path, const std::string& text = "") const {
    std::filesystem::create_directories((root_.path() / path).parent_path());
    std::ofstream(root_.path() / path) << text;
  }
  /// A device file that exists and cannot be opened, by root either, whom modes do not stop.
  void closed(const std::string& path) const {
    std::filesystem::create_directories((root_.path() / path).parent_path());
    std::filesystem::remove(root_.path() / path);
    std::filesystem::create_symlink("nowhere", root_.path() / path);
  }
  void nvidia(int minor,
              const std::string& address,
              const std::string& cpus,
              const std::string& uuid = "GPU-?") const {
    write("dev/nvidia" + std::to_string(minor));
    write("proc/driver/nvidia/gpus/" + address + "/information",
          "Model: \t\t NVIDIA H100\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " +
              std::to_string(minor) + "\nBus Type: \t PCIe\n");
    write("sys/bus/pci/devices/" + address + "/local_cpulist", cpus + "\n");
  }
  void amd(int node, int minor, int location, int simds = 440) const {
    write("dev/kfd");
    write("dev/dri/renderD" + std::to_string(minor));
    write("sys/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties",
          "cpu_cores_count 0\nsimd_count " + std::to_string(simds) + "\nlocation_id " +
              std::to_string(location) + "\ndomain 0\ndrm_render_minor " + std::to_string(minor) +
              "\n");
  }
  [[nodiscard]] Gpus find(const Variables& variables = {}) const {
    return find_gpus(root_.path().string(), [&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  }
  [[nodiscard]] std::vector<std::string> addresses(const Variables& variables) const {
    std::vector<std::string> all;
    for (const Gpu& gpu : find(variables).visible) {
      all.push_back(gpu.address);
    }
    return all;
  }

 private:
  const test::TempDir root_;
};

TEST_F(FindGpus, NothingWhereThereIsNoDriver) {
  EXPECT_EQ(find({{"CUDA_VISIBLE_DEVICES", "0,1"}}).driver, GpuDriver::kNone);
  EXPECT_THAT(find({{"CUDA_VISIBLE_DEVICES", "0,1"}}).visible, IsEmpty());
  EXPECT_EQ(find({{"CUDA_VISIBLE_DEVICES", "0,1"}}).list, "0,1");
  (void)find_gpus();  // of this machine
}

TEST_F(FindGpus, NvidiasByTheirDeviceFiles) {
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia"}) {
    write(std::string("dev/") + name);
  }
  const auto count = [&](const std::string& list) {
    return find({{"CUDA_VISIBLE_DEVICES", list}}).visible.size();
  };
  EXPECT_EQ(find().driver, GpuDriver::kNvidia);
  EXPECT_EQ(find().visible.size(), 3U);
  EXPECT_EQ(count("0,2"), 2U);
  EXPECT_EQ(count(""), 0U);
  EXPECT_EQ(count("-1"), 0U);
  EXPECT_EQ(count("1,-1,0"), 1U);  // CUDA stops at the first invalid one
  EXPECT_EQ(count("GPU-5ab3, GPU-77"), 2U);
  EXPECT_EQ(count("MIG-5a,MIG-77"), 1U);  // CUDA shows one instance to a process
  EXPECT_EQ(count("MIG-GPU-5ab3/1/0,0"), 2U);
}

TEST_F(FindGpus, NvidiasAlongTheBusWithTheProcessorsNextToThem) {
  nvidia(1, "0000:17:00.0", "0-1");
  nvidia(0, "0000:9a:00.0", "2-3");
  const Gpus found = find({{"HIP_VISIBLE_DEVICES", "0"}});  // another maker's
  ASSERT_EQ(found.visible.size(), 2U);
  EXPECT_EQ(found.visible[0].address, "0000:17:00.0");
  EXPECT_THAT(found.visible[1].cpus, ElementsAre(2, 3));
  EXPECT_THAT(addresses({{"CUDA_VISIBLE_DEVICES", "1,GPU-5a,0"}}),
              ElementsAre("0000:9a:00.0", "", "0000:17:00.0"));
}

TEST_F(FindGpus, OnlyThoseThatAContainerHas) {
  nvidia(3, "0000:17:00.0", "0");
  write("proc/driver/nvidia/gpus/0000:9a:00.0/information", "Device Minor: \t 0\n");
  EXPECT_THAT(addresses({}), ElementsAre("0000:17:00.0"));
}

TEST_F(FindGpus, NvidiasByTheirNames) {
  nvidia(0, "0000:17:00.0", "0-1", "GPU-5ab3c9-11");
  nvidia(1, "0000:9a:00.0", "2-3", "GPU-5a99-22");
  EXPECT_THAT(addresses({{"CUDA_VISIBLE_DEVICES", "GPU-5a9,GPU-5ab3c9-11"}}),
              ElementsAre("0000:9a:00.0", "0000:17:00.0"));
  EXPECT_THAT(addresses({{"CUDA_VISIBLE_DEVICES", "1,GPU-77,0"}}), ElementsAre("0000:9a:00.0"));
}

TEST_F(FindGpus, NotThoseThatTheQueueKeepsFromThisJob) {
  nvidia(0, "0000:17:00.0", "0-1");
  nvidia(1, "0000:9a:00.0", "2-3");
  closed("dev/nvidia0");
  EXPECT_THAT(addresses({{"CUDA_VISIBLE_DEVICES", "0"}}), ElementsAre("0000:9a:00.0"));
  EXPECT_EQ(find().closed, 1);
  closed("dev/nvidia1");
  EXPECT_EQ(find().driver, GpuDriver::kNone);
}

TEST_F(FindGpus, NvidiasBeforeTheirDeviceFilesAreMade) {
  write("proc/driver/nvidia/gpus/0000:01:00.0/information", "");
  EXPECT_THAT(addresses({}), IsEmpty()) << "a container that has none of them";
  write("proc/self/mountinfo",
        "23 28 0:21 / /proc rw,nosuid - proc proc rw\n"
        "24 28 0:5 / /dev rw,nosuid,relatime shared:2 - devtmpfs udev rw,size=8k\n");
  EXPECT_THAT(addresses({}), ElementsAre("0000:01:00.0"));
  write("dev/nvidiactl");
  EXPECT_THAT(addresses({}), IsEmpty()) << "they are made, and none is there";
}

TEST_F(FindGpus, AmdsByTheirProcessorsInTheKernelsOrder) {
  write("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n");
  amd(10, 129, 0xc100);
  amd(2, 128, 0x2301);     // a part of a card, which has no address of its own
  amd(3, 130, 0x7a00, 4);  // of the processor
  write("sys/class/kfd/kfd/topology/nodes/4/properties", "simd_count 440\ndrm_render_minor 135\n");
  write("sys/bus/pci/devices/0000:c1:00.0/local_cpulist", "8-9\n");
  const Gpus found = find();
  EXPECT_EQ(found.driver, GpuDriver::kAmd);
  EXPECT_STREQ(found.variable(), "HIP_VISIBLE_DEVICES");
  EXPECT_THAT(addresses({}), ElementsAre("0000:23:00.0", "0000:c1:00.0"));
  EXPECT_THAT(found.visible[1].cpus, ElementsAre(8, 9));
  closed("dev/dri/renderD128");
  EXPECT_THAT(addresses({}), ElementsAre("0000:c1:00.0"));
  closed("dev/kfd");
  EXPECT_EQ(find().driver, GpuDriver::kNone);
  EXPECT_EQ(find().closed, 2);
}

TEST_F(FindGpus, NoneWhereTheProcessorsOwnIsAll) {
  amd(1, 128, 0x7a00, 24);
  EXPECT_EQ(find().driver, GpuDriver::kNone);
  amd(2, 129, 0x7b00, 64);  // a large one, which AMD's libraries support
  EXPECT_EQ(find().visible.size(), 1U);
}

TEST_F(FindGpus, AmdsThatThreeVariablesLeave) {
  amd(1, 128, 0x100);
  amd(2, 129, 0x200);
  amd(3, 130, 0x300);
  EXPECT_THAT(addresses({{"CUDA_VISIBLE_DEVICES", "2"}}), ElementsAre("0000:03:00.0"));
  EXPECT_THAT(addresses({{"CUDA_VISIBLE_DEVICES", "2"}, {"HIP_VISIBLE_DEVICES", "0"}}),
              ElementsAre("0000:01:00.0"));
  EXPECT_THAT(addresses({{"ROCR_VISIBLE_DEVICES", "2,1"}, {"HIP_VISIBLE_DEVICES", "0"}}),
              ElementsAre("0000:03:00.0"));
  EXPECT_EQ(find({{"ROCR_VISIBLE_DEVICES", "2,1"}}).all.size(), 2U);
  // To AMD's runtime these are not set.
  EXPECT_EQ(find({{"HIP_VISIBLE_DEVICES", ""}, {"CUDA_VISIBLE_DEVICES", ""}}).visible.size(), 3U);
  EXPECT_THAT(addresses({{"HIP_VISIBLE_DEVICES", ""}, {"CUDA_VISIBLE_DEVICES", "1"}}),
              ElementsAre("0000:02:00.0"));
  EXPECT_THAT(addresses({{"ROCR_VISIBLE_DEVICES", ""}}), IsEmpty());
  EXPECT_STREQ(find({{"CUDA_VISIBLE_DEVICES", "2"}}).list_from, "CUDA_VISIBLE_DEVICES");
  EXPECT_STREQ(find({{"HIP_VISIBLE_DEVICES", "2"}}).list_from, "HIP_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace argosy::os
