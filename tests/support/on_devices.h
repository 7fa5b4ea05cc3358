#pragma once

#include <string>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/cards.h"
#include "tests/support/second_device.h"

// One test body for every kind of device beside the CPU. Include after torch's headers.
namespace argosy::test {

enum class DeviceKind {
  kSecond,  ///< second_device(): everywhere, equal to the CPU to the bit
  kCuda,    ///< skipped where there is none
};

/// Base of suites of tests on devices; a suite calls ARGOSY_ON_DEVICES once:
///
///     class Sums : public test::OnDevices {};
///     TEST_P(Sums, Work) { expect_equal(at::ones({2}, device()).sum(), at::scalar_tensor(2.F)); }
///     ARGOSY_ON_DEVICES(Sums);            // tests Second/Sums.Work/0 and Cuda/Sums.Work/0
class OnDevices : public ::testing::TestWithParam<DeviceKind> {
 protected:
  OnDevices() {  // 10 bits of mantissa are none to compare by
    at::globalContext().setAllowTF32CuBLAS(false);
    at::globalContext().setAllowTF32CuDNN(false);
  }
  void SetUp() override {
    if (number_of_devices() == 0) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
  [[nodiscard]] bool is_cuda() const { return GetParam() == DeviceKind::kCuda; }
  [[nodiscard]] int number_of_devices() const {
    if (is_cuda()) {
      return torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
    }
    return kSecondDevices;
  }
  /// One after the other for ranks and replicas; from the first again where there are fewer.
  [[nodiscard]] at::Device device(int index = 0) const {
    return is_cuda()
               ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index % number_of_devices()))
               : second_device(index % number_of_devices());
  }
  /// What a device has computed, against the CPU: the same bits, or on CUDA the same but for
  /// rounding.
  void expect_equal(const at::Tensor& got,
                    const at::Tensor& wanted,
                    const std::string& what = "") const {
    ASSERT_TRUE(got.defined() && wanted.defined()) << what;
    ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
    ASSERT_EQ(got.scalar_type(), wanted.scalar_type()) << what;
    const at::Tensor a = got.detach().cpu(), b = wanted.detach().cpu();
    if (is_cuda() && a.is_floating_point()) {
      EXPECT_TRUE(a.allclose(b, /*rtol=*/1e-4, /*atol=*/1e-5)) << what;
    } else {
      EXPECT_TRUE(a.equal(b)) << what << ": largest difference "
                              << (a.to(at::kDouble) - b.to(at::kDouble)).abs().max();
    }
  }
};

/// The same for tests whose ranks are processes, which must not find CUDA in use by their parent:
/// nor is it asked for devices; only ranks call device().
class OnDevicesInProcesses : public OnDevices {
 protected:
  void SetUp() override {
    if (is_cuda() && !has_cards()) {
      GTEST_SKIP() << "no CUDA device";
    }
  }
  /// This rank's device for NCCL.
  [[nodiscard]] at::Device device_over_nccl(int rank, int ranks) const {
    return is_cuda() ? card_over_nccl(rank, ranks) : device(rank);
  }
};

}  // namespace argosy::test

/// Ranks that are threads need a device each, for autograd has one thread for each device.
#define ARGOSY_NEED_DEVICES(n)                          \
  if (number_of_devices() < (n)) {                      \
    GTEST_SKIP() << "fewer than " << (n) << " devices"; \
  }

#define ARGOSY_ON_DEVICES(Suite)                                                                   \
  INSTANTIATE_TEST_SUITE_P(Second, Suite, ::testing::Values(::argosy::test::DeviceKind::kSecond)); \
  INSTANTIATE_TEST_SUITE_P(Cuda, Suite, ::testing::Values(::argosy::test::DeviceKind::kCuda))
