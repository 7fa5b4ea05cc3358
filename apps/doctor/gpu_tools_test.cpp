#include "apps/doctor/gpu_tools.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/env.h"

#include "tests/support/temp_dir.h"

namespace argosy::doctor {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(NvidiaSmi, ListsGpusByIndex) {
  const auto gpus = read_nvidia_smi(
      "0, 00000000:17:00.0, 580.159.04, 81559, NVIDIA H100 80GB HBM3\n"
      "Unable to determine the device handle for GPU1: 0000:3D:00.0: Unknown Error\n"
      "2, 00000001:C1:00.0, 580.159.04, [N/A], NVIDIA GB10\n");
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].address, "0000:17:00.0");
  EXPECT_EQ(gpus[0].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(gpus[0].driver, "580.159.04");
  EXPECT_EQ(gpus[0].memory_bytes, int64_t{81559} << 20);
  EXPECT_EQ(gpus[1].name, "");
  EXPECT_EQ(gpus[2].address, "0001:c1:00.0");
  EXPECT_EQ(gpus[2].memory_bytes, 0);
}

TEST(NvidiaSmi, TellsLinksThatWork) {
  std::vector<GpuFacts> gpus(4);
  add_nvlinks(
      "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n"
      "GPU 1: Tesla V100-SXM2-32GB (UUID: GPU-2)\n\t Link 0: 25.781 GB/s\n\t Link 1: <inactive>\n"
      "GPU 2: NVIDIA A40 (UUID: GPU-3)\n\t Link 0: <inactive>\n"
      "GPU 7: of which nothing was said (UUID: GPU-4)\n\t Link 0: 25.781 GB/s\n",
      gpus);
  EXPECT_EQ(gpus[0].links, "2 NVLinks of 26.562 GB/s");
  EXPECT_EQ(gpus[1].links, "1 of 2 NVLinks active, of 25.781 GB/s");
  EXPECT_EQ(gpus[2].links, "none of 1 NVLinks active");
  EXPECT_EQ(gpus[3].links, "");
}

TEST(NvidiaSmi, TellsWhatHoldsClocksDown) {
  EXPECT_THAT(read_clock_reasons("00000000:17:00.0, 0x0000000000000044\n00000000:3D:00.0, [N/A]\n"),
              UnorderedElementsAre(Pair("0000:17:00.0", 0x44)));
  EXPECT_EQ(slowdowns(0x1 | 0x2 | 0x4 | 0x10), "");  // idle, and limits that are meant
  EXPECT_EQ(slowdowns(0x44), "too hot (the hardware slows it down)");
  EXPECT_EQ(slowdowns(0x88), "hardware slowdown, power brake of the power supply");
}

TEST(RocmSmi, ListsGpusOfOldAndNewVersions) {
  const auto gpus = read_rocm_smi(R"json(WARNING: AMD GPU device(s) is/are in a low-power state.
{"card0": {"PCI Bus": "0000:C1:00.0", "Card series": "AMD INSTINCT MI250",
           "VRAM Total Memory (B)": "68702699520"},
 "card1": {"PCI Bus": "0000:C6:00.0", "Card Series": "AMD Instinct MI250X"},
 "system": {"Driver version": "6.2.4",
            "(Topology) Link type between DRM devices 0 and 1": "XGMI",
            "(Topology) Link type between DRM devices 0 and 2": "PCIE"}})json");
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[0].address, "0000:c1:00.0");
  EXPECT_EQ(gpus[0].name, "AMD INSTINCT MI250");
  EXPECT_EQ(gpus[0].driver, "6.2.4");
  EXPECT_EQ(gpus[0].memory_bytes, 68702699520);
  EXPECT_EQ(gpus[0].links, "XGMI to 1 other");
  EXPECT_EQ(gpus[1].name, "AMD Instinct MI250X");
  EXPECT_TRUE(read_rocm_smi("ERROR: no driver\n").empty());
}

/// Tools in a folder of our own, which alone is the PATH.
class FakeTools : public testing::Test {
 protected:
  FakeTools() : path_(env::get("PATH").value_or("")) {
    ::setenv("PATH", folder_.path().c_str(), 1);
  }
  ~FakeTools() override { ::setenv("PATH", path_.c_str(), 1); }
  void tool(const std::string& name, const std::string& script) const {
    const std::filesystem::path file = folder_.path() / name;
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

 private:
  const test::TempDir folder_;
  const std::string path_;
};

TEST_F(FakeTools, AreAskedInTheirOwnLanguage) {
  tool("nvidia-smi",
       "case \"$*\" in\n"
       "  '--query-gpu=index,pci.bus_id,driver_version,memory.total,name "
       "--format=csv,noheader,nounits') echo '0, 00000000:17:00.0, 535.1, 40960, A100';;\n"
       "  'nvlink --status') printf 'GPU 0: A100 (UUID: x)\\n\\t Link 0: 25 GB/s\\n';;\n"
       "  '--query-gpu=pci.bus_id,clocks_throttle_reasons.active --format=csv,noheader')\n"
       "    echo '00000000:17:00.0, 0x0000000000000020';;\n"
       "  *) echo \"Field is not a valid field to query.\"; exit 2;;\n"
       "esac");
  const ToolSaid said = ask_tool(os::GpuDriver::kNvidia);
  ASSERT_EQ(said.gpus.size(), 1U) << said.failure;
  EXPECT_EQ(said.gpus[0].links, "1 NVLinks of 25 GB/s");
  EXPECT_THAT(ask_clock_reasons(os::GpuDriver::kNvidia),
              UnorderedElementsAre(Pair("0000:17:00.0", 0x20)));  // by its older name
  EXPECT_TRUE(ask_clock_reasons(os::GpuDriver::kAmd).empty());
}

TEST_F(FakeTools, ThatAreMissingOrFailAreTold) {
  EXPECT_THAT(ask_tool(os::GpuDriver::kAmd).failure, HasSubstr("rocm-smi cannot be run: "));
  tool("nvidia-smi", "echo \"couldn't communicate with the NVIDIA driver\"; exit 9");
  EXPECT_EQ(ask_tool(os::GpuDriver::kNvidia).failure,
            "nvidia-smi failed with code 9: couldn't communicate with the NVIDIA driver");
  tool("nvidia-smi", "echo No devices were found");
  EXPECT_EQ(ask_tool(os::GpuDriver::kNvidia).failure,
            "nvidia-smi lists no GPU: No devices were found");
}

}  // namespace
}  // namespace argosy::doctor
