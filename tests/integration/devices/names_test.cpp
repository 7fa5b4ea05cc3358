/// Which device a word means, and which one a process gets.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/engine/device.h"
#include "argosy/fleet/fleet.h"

#include "tests/support/error_text.h"
#include "tests/support/on_devices.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy {
namespace {

using ::testing::HasSubstr;

class DeviceNames : public ::testing::Test {
 protected:
  void SetUp() override {
    if (engine::device_count(c10::kCUDA) > 0) {
      GTEST_SKIP() << "they are of a machine whose only accelerator is the second device";
    }
  }
};

std::string refusal(const char* word) {
  return test::error_text<UsageError>([&] { (void)engine::find_device(word); });
}

TEST_F(DeviceNames, AreTorchsAndPaddles) {
  const c10::DeviceType type = test::second_device().type();
  EXPECT_EQ(engine::accelerator(), type);
  EXPECT_EQ(engine::device_count(type), test::kSecondDevices);
  EXPECT_EQ(engine::find_device("cpu"), at::Device(at::kCPU));
  EXPECT_EQ(engine::find_device("auto"), test::second_device(0));
  EXPECT_EQ(engine::find_device("auto", 2), test::second_device(2));
  testing::internal::CaptureStderr();
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(engine::find_device("auto", test::kSecondDevices + 1), test::second_device(1))
        << "more ranks than devices";
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("process 9 of this host shares device 1: it sees 8 devices"));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << "once";
  const std::string name = c10::DeviceTypeName(type, /*lower_case=*/true);
  EXPECT_EQ(engine::find_device(name, 1), test::second_device(1));
  EXPECT_EQ(engine::find_device(name + ":2", 1), test::second_device(2));
}

TEST_F(DeviceNames, ThatMeanNothingAreRefused) {
  EXPECT_THAT(refusal("gpu:0"), HasSubstr("\"gpu:0\": this process sees no cuda device"));
  EXPECT_THAT(
      refusal("gpu:0"),
      HasSubstr(c10::impl::hasDeviceGuardImpl(at::kCUDA) ? "`argosy doctor` looks for them"
                                                         : "its libtorch is built without them"));
  EXPECT_THAT(refusal("cuda"), HasSubstr("\"auto\" takes the CPU where there is none"));
  const std::string name = c10::DeviceTypeName(test::second_device().type(), /*lower_case=*/true);
  const std::string count = std::to_string(test::kSecondDevices);
  EXPECT_THAT(refusal((name + ":" + count).c_str()),
              HasSubstr("this process sees " + count + " " + name + " devices"));
  EXPECT_NO_THROW(engine::check_device_word("cuda:7")) << "where it is not there";
  EXPECT_THROW(engine::check_device_word("gpus"), UsageError);
  for (const char* const word :
       {"", "gpus", "cuda:", "cuda:x", "cuda:1:2", "cuda:-1", "cpu:1", "auto:1", ":1"}) {
    EXPECT_THAT(refusal(word), HasSubstr("expected cpu, cuda, cuda:<number>")) << word;
  }
}

TEST_F(DeviceNames, OfAProcessAreByItsNumberAmongThoseOfItsHost) {
  ::setenv("CUDA_VISIBLE_DEVICES", "none", 1);
  EXPECT_THAT(refusal("gpu"), HasSubstr("no cuda device, CUDA_VISIBLE_DEVICES=none"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(test::error_text<UsageError>([] { (void)engine::find_device("auto", -1); }),
              HasSubstr("cannot tell which of 8 devices is this process's. Set LOCAL_RANK"));
}

using Variables = std::map<const char*, const char*>;

/// Variables of the environment while it lives.
class Environment final {
 public:
  explicit Environment(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) {
      ::setenv(name, value, 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) {
      ::unsetenv(name);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  Variables variables_;
};

at::Device device_with(const Variables& variables,
                       int local_rank,
                       const std::string& word = "auto") {
  const Environment environment(variables);
  return engine::find_device(word, local_rank);
}

TEST_F(DeviceNames, ThatPaddleSelectsAreTakenWhereNobodyElseNumbersProcesses) {
  const auto second = [](int index) { return test::second_device(index); };
  EXPECT_EQ(device_with({{"FLAGS_selected_gpus", "2"}}, 0), second(2));
  EXPECT_EQ(device_with({{"FLAGS_selected_gpus", "2"}, {"PADDLE_LOCAL_RANK", "1"}}, 1), second(2));
  EXPECT_EQ(device_with({{"FLAGS_selected_gpus", "2, 0"}}, 1), second(0));
  // Exported in the shell of torchrun, of srun, of mpirun.
  for (const char* const name : {"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    EXPECT_EQ(device_with({{"FLAGS_selected_gpus", "0"}, {name, "1"}}, 1), second(1)) << name;
  }
  const std::string name = c10::DeviceTypeName(second(0).type(), /*lower_case=*/true);
  EXPECT_EQ(device_with({{"FLAGS_selected_gpus", "all"}}, 0, name + ":1"), second(1))
      << "not asked";
  EXPECT_THAT(test::error_text<ConfigError>([] {
                (void)device_with({{"FLAGS_selected_gpus", "all"}}, 0);
              }),
              HasSubstr("FLAGS_selected_gpus=all: expected numbers of GPUs"));
}

TEST_F(DeviceNames, InitMakesThatOfTheProcessCurrent) {
  const test::TempDir folder;
  test::run_ranks(2,
                  [&](int rank) {
                    ::setenv("FLAGS_selected_gpus", std::to_string(rank).c_str(), 1);
                    fleet::init({},
                                {.init_method = "file://" + folder.path().string() + "/store",
                                 .rank = rank,
                                 .world_size = 2});
                    EXPECT_EQ(fleet::device(), test::second_device(rank));
                    const at::Device type(test::second_device().type());
                    EXPECT_EQ(at::zeros({1}, type).device(), fleet::device());
                    fleet::stop_worker();
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
}

}  // namespace
}  // namespace argosy
