/// What a device's tensors say, fetched while it computes.
#include "argosy/engine/host_fetch.h"

#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/held_stream.h"
#include "tests/support/on_devices.h"

namespace argosy::engine {
namespace {

class HostFetchOf : public test::OnDevices {
 protected:
  [[nodiscard]] at::Tensor numbers(int64_t from, at::IntArrayRef sizes) const {
    const int64_t count = c10::multiply_integers(sizes);
    return at::arange(from, from + count, at::kFloat).view(sizes).to(device());
  }
  [[nodiscard]] c10::Stream stream() const {
    return c10::impl::VirtualGuardImpl(device().type()).getStream(device());
  }
};
ARGOSY_ON_DEVICES(HostFetchOf);

TEST_P(HostFetchOf, HasTheValuesOfItsTime) {
  for (int64_t round = 0; round < 100; ++round) {
    HostFetch fetch;
    {
      const at::Tensor values = numbers(round, {3, 40}).mul(2);
      fetch = HostFetch({values.t(), at::Tensor(), values.sum(), at::ones({2})});
    }  // its memory goes to the next tensor of the size
    const at::Tensor other = numbers(-7, {3, 40}).mul(3);
    const std::vector<at::Tensor>& here = fetch.get();
    ASSERT_EQ(here.size(), 4U);
    EXPECT_TRUE(here[0].is_cpu() && here[2].is_cpu());
    EXPECT_TRUE(here[0].equal(at::arange(round, round + 120, at::kFloat).view({3, 40}).mul(2).t()));
    EXPECT_FALSE(here[1].defined());
    EXPECT_EQ(here[2].item<double>(), 2.0 * (120.0 * static_cast<double>(round) + 7140));
    EXPECT_TRUE(here[3].equal(at::ones({2})));
    EXPECT_EQ(other.sum().item<double>(), 3 * (-7 * 120.0 + 7140));
  }
}

TEST_P(HostFetchOf, WaitsForNothingThatWasQueuedLater) {
  if (is_cuda()) {
    GTEST_SKIP() << "the device does not tell its streams";
  }
  const at::Tensor loss = numbers(1, {4}).sum().requires_grad_();
  HostFetch fetch({loss});
  test::HeldStream held(stream());
  const at::Tensor later = loss.detach() * 2;
  EXPECT_EQ(fetch.get()[0].item<double>(), 10);
  EXPECT_FALSE(fetch.get()[0].requires_grad());
  EXPECT_FALSE(stream().query());
  held.release();
  EXPECT_EQ(later.item<double>(), 20);
}

TEST_P(HostFetchOf, MayBeLetGo) {
  for (int round = 0; round < 50; ++round) {
    const HostFetch fetch({numbers(round, {1000})});
  }
  EXPECT_EQ(numbers(5, {1}).item<double>(), 5);
}

}  // namespace
}  // namespace argosy::engine
