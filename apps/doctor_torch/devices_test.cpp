#include "apps/doctor_torch/devices.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include "tests/support/on_devices.h"

namespace argosy::doctor {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

/// Prime, so that no size comes out even.
constexpr DeviceWork kLittle{.matrix = 67, .copy_bytes = 4 * 4099, .repeats = 2};

class DoctorOfDevices : public test::OnDevices {
 protected:
  [[nodiscard]] Tell tell() {
    return [this](const std::string& step) { steps_.push_back(step); };
  }
  [[nodiscard]] const std::vector<std::string>& steps() const { return steps_; }

 private:
  std::vector<std::string> steps_;
};
ARGOSY_ON_DEVICES(DoctorOfDevices);

TEST_P(DoctorOfDevices, TimesWhatADeviceDoes) {
  const DeviceReport report = measure_device(device(), tell(), kLittle);
  EXPECT_EQ(report.wrong, "");
  EXPECT_THAT(report.figures,
              ElementsAre(ContainsRegex("^float32 [0-9.e-]+ TFLOP/s$"),
                          ContainsRegex("^bfloat16 [0-9.e-]+ TFLOP/s$"),
                          ContainsRegex("^memory [0-9.]+ .?B/s .read and written.$"),
                          ContainsRegex("^the host's memory .*B/s to the device, .*B/s from it")));
  EXPECT_THAT(steps(),
              ElementsAre("product in float32",
                          "product in bfloat16",
                          "copies in its memory",
                          "copies to it and back"));
}

TEST_P(DoctorOfDevices, TimesCopiesBetweenEachTwo) {
  ARGOSY_NEED_DEVICES(2);
  const DeviceReport report = measure_pairs({device(0), device(1)}, tell(), kLittle);
  EXPECT_EQ(report.wrong, "");
  EXPECT_THAT(report.figures, ElementsAre(ContainsRegex("^2 copies, the fastest .*B/s")));
  const std::string one = device(0).str();
  const std::string other = device(1).str();
  EXPECT_THAT(steps(), ElementsAre(one + " to " + other, other + " to " + one));
}

TEST_P(DoctorOfDevices, ADeviceThatIsNotThereFailsByName) {
  const c10::Device absent(device().type(), 99);
  const DeviceReport report = measure_device(absent, tell(), kLittle);
  EXPECT_THAT(report.wrong, StartsWith("product in float32: "));
  EXPECT_THAT(report.figures, IsEmpty());
  EXPECT_THAT(steps(), ElementsAre("product in float32"));
  EXPECT_THAT(measure_pairs({device(), absent}, tell(), kLittle).wrong,
              StartsWith(device().str() + " to " + absent.str() + ": "));
}

/// A kernel of the second device that has one number wrong, in a row that is looked at.
at::Tensor spoiled_mm(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor product = at::mm(a.cpu(), b.cpu());
  product[4][66] += 1;
  return product.to(a.device());
}

TEST_P(DoctorOfDevices, AWrongNumberIsFound) {
  if (is_cuda()) {
    return;  // whose kernels are not ours to spoil
  }
  const c10::DispatchKey key = at::TensorOptions(device()).computeDispatchKey();
  torch::Library kernels(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  kernels.impl("mm", &spoiled_mm);
  EXPECT_EQ(measure_device(device(), tell(), kLittle).wrong,
            "product in float32: the result is wrong");
}

TEST(DeviceBuild, IsReadFromTheConfiguration) {
  const DeviceBuild cuda = read_build(
      "PyTorch built with:\n  - GCC 9.3\n  - CUDA Runtime 12.1\n  - NVCC architecture flags: "
      "-gencode;arch=compute_80,code=sm_80;-gencode;arch=compute_90,code=compute_90\n"
      "  - Build settings: CUDA_VERSION=12.1, CXX_FLAGS= -O2 code=x\n");
  EXPECT_EQ(cuda.runtime, "CUDA 12.1");
  EXPECT_THAT(cuda.architectures, ElementsAre("sm_80", "compute_90"));
  const DeviceBuild rocm = read_build("  - HIP Runtime 6.2.41133\n  - MIOpen 3.2.0\n");
  EXPECT_EQ(rocm.runtime, "HIP 6.2.41133");
  EXPECT_THAT(rocm.architectures, IsEmpty());
  EXPECT_EQ(read_build("  - CPU capability usage: AVX512\n").runtime, "");
}

}  // namespace
}  // namespace argosy::doctor
