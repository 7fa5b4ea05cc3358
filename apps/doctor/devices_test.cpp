#include "apps/doctor/devices.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace argosy::doctor {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Verdict = Finding::Verdict;

const std::string kFirst =
    "[W] a warning\n"
    R"(doctor {"subject":"libtorch","verdict":"fine","text":"2.11.0, CUDA 13.0","advice":""})"
    "\ndoctor tries GPU 0: product in float32\n"
    R"(doctor {"subject":"GPU 0","verdict":"fine","text":"float32 51.2 TFLOP/s"})"
    "\n";
const std::string kSecond =
    "doctor tries GPU 1: product in float32\n"
    R"(doctor {"subject":"GPU 1","verdict":"bad","text":"the result is wrong","advice":"dmesg"})"
    "\n";

SeenGpus two_gpus() {
  const std::vector<os::Gpu> gpus{{.address = "0000:17:00.0", .cpus = {0, 1, 2}},
                                  {.address = "0000:bd:00.0"}};
  return {.gpus = {.driver = os::GpuDriver::kNvidia, .all = gpus, .visible = gpus},
          .tool = {.gpus = {{.address = "0000:17:00.0",
                             .name = "H100",
                             .driver = "580.1",
                             .memory_bytes = int64_t{80} << 30,
                             .links = "18 NVLinks of 26 GB/s"}}}};
}

std::vector<Finding> read(const std::string& output,
                          std::optional<os::Exit> end = os::Exit{},
                          const std::map<std::string, uint64_t>& clock_reasons = {}) {
  return read_devices(two_gpus(), {.output = output, .end = end}, clock_reasons);
}

TEST(Devices, AreToldWithWhatTheyAre) {
  EXPECT_EQ(render(read(kFirst + kSecond)),
            "      libtorch  2.11.0, CUDA 13.0\n"
            "      GPU 0     float32 51.2 TFLOP/s; H100; 80.0 GiB; 0000:17:00.0 next to cores 0-2; "
            "18 NVLinks of 26 GB/s\n"
            "bad   GPU 1     the result is wrong; 0000:bd:00.0\n"
            "                → dmesg\n"
            "1 bad\n");
}

/// What libtorch says of the places of its GPUs, then of the first of them.
std::string placed(const std::string& addresses) {
  return R"(doctor {"subject":"libtorch","verdict":"fine","text":"2.11.0","addresses":[)" +
         addresses + "]}\n" +
         R"(doctor {"subject":"GPU 0","verdict":"fine","text":"float32 51.2 TFLOP/s"})" + "\n";
}

TEST(Devices, AreKnownByTheirPlacesNotByTheirNumbers) {
  // CUDA's order of unlike cards begins with the fastest.
  const auto other = read(placed(R"("0000:BD:00.0","0000:17:00.0")"));
  EXPECT_EQ(other[0].text, "2.11.0");
  EXPECT_EQ(other[1].text, "float32 51.2 TFLOP/s; 0000:bd:00.0");
  EXPECT_THAT(read(placed(R"("","")"))[1].text, HasSubstr("0000:17:00.0")) << "not known";
}

TEST(Devices, ThatLibtorchDoesNotSeeAreBad) {
  const auto one = read(placed(R"("0000:bd:00.0")"));
  EXPECT_EQ(one[0].verdict, Verdict::kBad);
  EXPECT_EQ(one[0].text, "2.11.0; the driver lists 2 GPUs, libtorch sees 1");
  EXPECT_THAT(one[0].advice, HasSubstr("dmesg for 0000:17:00.0"));
  EXPECT_EQ(one[1].text, "float32 51.2 TFLOP/s; 0000:bd:00.0");
  EXPECT_THAT(read(placed(R"("")"))[1].text, testing::Not(HasSubstr("0000")));
  const auto none = read(placed(""));
  EXPECT_EQ(none[0].verdict, Verdict::kBad);
  EXPECT_THAT(none[0].text, HasSubstr("the driver lists 2 GPUs, libtorch sees 0"));
  const auto three = read(placed(R"("0000:17:00.0","0000:bd:00.0","0000:7a:00.0")"));
  EXPECT_EQ(three[0].verdict, Verdict::kNote);
}

TEST(Devices, ThatDoNotAnswerAreNamedWithWhatTheyDid) {
  const std::string tries = "doctor tries GPU 1: copies in its memory\n";
  const auto hangs = read(kFirst + tries, std::nullopt);
  ASSERT_EQ(hangs.size(), 3U);
  EXPECT_EQ(hangs[1].verdict, Verdict::kFine);
  EXPECT_EQ(hangs[2].subject, "GPU 1");
  EXPECT_EQ(hangs[2].verdict, Verdict::kBad);
  EXPECT_EQ(hangs[2].text,
            "copies in its memory: no answer in time; last line: [W] a warning; 0000:bd:00.0");
  EXPECT_THAT(read(kFirst + tries + "Xid 79\n", os::Exit{.signal = 6})[2].text,
              StartsWith("copies in its memory: killed by signal 6; last line: Xid 79"));
}

TEST(Devices, AnEngineThatDiesBesideThemIsBad) {
  const auto without = read("cannot open libcudart.so\n", os::Exit{.code = 127});
  ASSERT_EQ(without.size(), 1U);
  EXPECT_EQ(without[0].subject, "argosy-torch");
  EXPECT_EQ(without[0].text, "ended with code 127; last line: cannot open libcudart.so");
  EXPECT_EQ(read(kFirst, os::Exit{.signal = 11}).back().subject, "argosy-torch");
}

TEST(Devices, ThatAreSlowedDownWhileTheyWorkAreNoted) {
  const auto at = [](uint64_t bits) { return read(kFirst, os::Exit{}, {{"0000:17:00.0", bits}}); };
  EXPECT_EQ(at(0x40)[1].verdict, Verdict::kNote);
  EXPECT_THAT(at(0x40)[1].text, HasSubstr("slow while it computed: too hot"));
  EXPECT_EQ(at(0x4)[1].verdict, Verdict::kFine);
}

TEST(Devices, AreTriedByTheEngine) {
  const test::TempDir folder;
  const std::filesystem::path engine = folder.path() / "argosy-torch";
  EXPECT_FALSE(device_findings(two_gpus(), engine).at(0).tried);
  std::ofstream(engine) << "#!/bin/sh\n[ \"$*\" = doctor-devices ] || exit 9\n"
                        << "cat <<'END'\n"
                        << kFirst << "END\n";
  std::filesystem::permissions(engine, std::filesystem::perms::owner_all);
  const auto findings = device_findings(two_gpus(), engine);
  EXPECT_EQ(findings.size(), 2U) << render(findings);
  EXPECT_TRUE(all_well(findings)) << render(findings);
  EXPECT_THAT(device_findings({}, engine), IsEmpty());
}

TEST(Gpus, AreCountedWithWhatTheToolSays) {
  EXPECT_EQ(gpus_finding(look_at({})).text, "none visible");
  EXPECT_EQ(gpus_finding(two_gpus()).text, "2 visible, H100, driver 580.1");
  SeenGpus hidden = two_gpus();
  hidden.gpus.visible.clear();
  hidden.gpus.list = "";
  EXPECT_EQ(gpus_finding(hidden).text, "none visible of 2 (CUDA_VISIBLE_DEVICES=)");
  SeenGpus kept = two_gpus();
  kept.gpus.closed = 6;
  EXPECT_EQ(gpus_finding(kept).text,
            "2 visible, 6 more that this process may not open, H100, driver 580.1");
  EXPECT_EQ(gpus_finding(kept).verdict, Verdict::kFine) << "what a queue does";
  const Finding closed = gpus_finding({.gpus = {.closed = 8}});
  EXPECT_EQ(closed.verdict, Verdict::kNote);
  EXPECT_THAT(closed.advice, HasSubstr("ask the queue for GPUs"));
  SeenGpus untold = two_gpus();
  untold.tool = {.failure = "nvidia-smi cannot be run"};
  EXPECT_EQ(gpus_finding(untold).verdict, Verdict::kNote);
  EXPECT_EQ(gpus_finding(untold).text, "2 visible; nvidia-smi cannot be run");
}

TEST(Program, ThatDoesNotEndIsKilledAndItsWordsAreKept) {
  int times = 0;
  const auto ran =
      run_program({"sh", "-c", "echo $IT >&2; echo $$; exec sleep 600"},
                  {.patience = 2500ms, .variables = {"IT=set"}, .meanwhile = [&] { ++times; }});
  ASSERT_TRUE(ran.ok());
  EXPECT_FALSE(ran->end);
  ASSERT_THAT(ran->output, StartsWith("set\n"));
  EXPECT_NE(::kill(std::stoi(ran->output.substr(4)), 0), 0) << "it still runs";
  EXPECT_GT(times, 0);
  EXPECT_EQ((*run_program({"sh", "-c", "exit 3"})).end->code, 3);
}

}  // namespace
}  // namespace argosy::doctor
