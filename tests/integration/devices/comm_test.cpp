/// Tensors that are not on the CPU, through the host's memory: every operation gives there what it
/// gives on the CPU.
#include <functional>
#include <string>
#include <vector>

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/env.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"

#include "tests/support/on_devices.h"

namespace argosy::comm {
namespace {

using testing::with_threads;

at::Tensor mine(const Group& world, at::IntArrayRef shape, at::ScalarType type = at::kFloat) {
  const at::Tensor counted = at::arange(c10::multiply_integers(shape), at::kFloat).reshape(shape);
  return (counted * (world.rank() + 2) - 3).to(type);
}

/// What is about copies through the host's memory.
#define ARGOSY_SKIP_OVER_NCCL()                                                         \
  if (env::get("ARGOSY_TEST_BACKEND").value_or("").find("nccl") != std::string::npos) { \
    GTEST_SKIP() << "nothing is copied to the host";                                    \
  }

class CommOnDevices : public test::OnDevices {
 protected:
  /// Runs `fn` on ranks whose tensors `there` makes: first the CPU's, then the same on devices of
  /// their own; what comes back must be equal, and on the device.
  using There = std::function<at::Tensor(const at::Tensor&)>;
  using Results = std::vector<at::Tensor>;
  void expect_as_on_cpu(int ranks, const std::function<Results(Group&, const There&)>& fn) const {
    with_threads(ranks, [&](Group& world) {
      const at::Device own = device(world.rank());
      const Results wanted = fn(world, [](const at::Tensor& t) { return t.clone(); });
      const Results got = fn(world, [&](const at::Tensor& t) { return t.to(own); });
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].device(), own) << i;
        expect_equal(got[i], wanted[i], "result " + std::to_string(i));
      }
    });
  }
};

TEST_P(CommOnDevices, InPlace) {
  expect_as_on_cpu(3, [](Group& world, const There& there) {
    const at::Tensor sum = there(mine(world, {3, 4}));
    all_reduce(sum, world);
    const at::Tensor most = there(mine(world, {5}, at::kLong));
    all_reduce(most, world, {.op = ReduceOp::kMax});
    const at::Tensor mean = there(mine(world, {7}, at::kHalf));
    all_reduce(mean, world, {.op = ReduceOp::kAvg});
    const at::Tensor on_root = there(mine(world, {2, 2}, at::kDouble));
    reduce(on_root, world, {.root = 1});
    const at::Tensor from_root = there(mine(world, {4}, at::kComplexFloat).view({2, 2}));
    broadcast(from_root, world, {.root = 2});
    return Results{sum, most, mean, on_root, from_root};
  });
}

TEST_P(CommOnDevices, GatheredAndScattered) {
  expect_as_on_cpu(3, [](Group& world, const There& there) {
    Results all = all_gather(there(mine(world, {2, 3})), world);
    const auto rows = static_cast<int64_t>(world.rank());
    all.push_back(all_gather_uneven(there(mine(world, {rows, 2}, at::kBool)), world));
    for (const at::Tensor& each : gather(there(mine(world, {3})), world, {.root = 2})) {
      all.push_back(each);
    }
    const Results parts{
        there(mine(world, {4})), there(mine(world, {4}) + 1), there(mine(world, {4}) - 1)};
    all.push_back(there(at::zeros({4})));
    scatter(all.back(), world.rank() == 1 ? parts : Results{}, world, {.root = 1});
    all.push_back(there(at::zeros({4})));
    reduce_scatter(all.back(), parts, world);
    const Results outputs{there(at::zeros({4})), there(at::zeros({4})), there(at::zeros({4}))};
    all_to_all(outputs, parts, world);
    all.insert(all.end(), outputs.begin(), outputs.end());
    return all;
  });
}

TEST_P(CommOnDevices, AsynchronousOnesInOrderAndWithoutTheirCaller) {
  expect_as_on_cpu(3, [](Group& world, const There& there) {
    const at::Tensor sum = there(mine(world, {4}));
    std::vector<Work> works;
    works.push_back(all_reduce_async(sum, world));
    works.push_back(all_reduce_async(there(at::ones({1000})), world));  // nobody else keeps it
    const at::Tensor other = there(mine(world, {6}));
    works.push_back(broadcast_async(other, world, {.root = 1}));
    const Results gathered{there(at::zeros({2})), there(at::zeros({2})), there(at::zeros({2}))};
    works.push_back(all_gather_async(gathered, there(mine(world, {2})), world));
    const at::Tensor scattered = there(at::zeros({2}));
    const Results inputs(3, there(mine(world, {2})));
    works.push_back(reduce_scatter_async(scattered, inputs, world));
    for (const Work& work : works) {
      work.wait();
    }
    return Results{sum, other, gathered[0], gathered[1], gathered[2], scattered};
  });
}

TEST_P(CommOnDevices, PointToPoint) {
  expect_as_on_cpu(2, [](Group& world, const There& there) {
    const int peer = 1 - world.rank();
    const at::Tensor got = there(at::zeros({5}));
    const Work receiving = recv_async(got, peer, world, {.tag = 4});
    const Work sending = send_async(there(mine(world, {5})), peer, world, {.tag = 4});
    receiving.wait();
    sending.wait();
    const at::Tensor again = there(mine(world, {3}));
    world.rank() == 0 ? send(again, 1, world) : recv(again, 0, world);
    return Results{got, again};
  });
}

TEST_P(CommOnDevices, ViewsFormatsAndEmptyOnes) {
  expect_as_on_cpu(2, [](Group& world, const There& there) {
    const at::Tensor base = there(mine(world, {4, 6}));
    all_reduce(base.slice(1, 1, 6, 2), world);
    const at::Tensor image =
        there(mine(world, {2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast));
    all_reduce(image, world);
    EXPECT_TRUE(image.is_contiguous(at::MemoryFormat::ChannelsLast));
    const at::Tensor scalar = there(mine(world, {1}).squeeze());
    all_reduce(scalar, world);
    const at::Tensor empty = there(at::zeros({0, 4}));
    all_reduce(empty, world);
    const at::Tensor expanded = there(mine(world, {1})).expand({4});
    return Results{base, image, scalar, empty, all_gather(expanded, world)[1]};
  });
}

TEST_P(CommOnDevices, ALeafAndItsVersionArePassedByAsOnTheCpu) {
  with_threads(2, [&](Group& world) {
    const at::Tensor leaf = at::ones({3}).to(device(world.rank())).requires_grad_();
    all_reduce(leaf, world);
    EXPECT_TRUE(leaf.is_leaf());
    expect_equal(leaf, at::full({3}, 2.F));
  });
}

TEST_P(CommOnDevices, LeaveTheCallersCurrentDevice) {
  ARGOSY_NEED_DEVICES(3);
  with_threads(2, [&](Group& group) {
    const c10::impl::VirtualGuardImpl card(device().type());
    const c10::DeviceGuard elsewhere(device(2));
    const at::Tensor tensor = at::ones({3}).to(device(group.rank()));
    all_reduce(tensor, group);
    group.rank() == 0 ? send(tensor, 1, group) : recv(tensor, 0, group);
    EXPECT_EQ(card.getDevice(), device(2));
    expect_equal(tensor, at::full({3}, 2.0F));
  });
}

TEST_P(CommOnDevices, RanksMayBeOnDifferentDevices) {
  ARGOSY_SKIP_OVER_NCCL();
  with_threads(2, [&](Group& world) {
    at::Tensor t = mine(world, {3});
    t = world.rank() == 0 ? t : t.to(device());
    all_reduce(t, world);
    expect_equal(t, at::arange(3, at::kFloat) * 5 - 6);
  });
}

TEST_P(CommOnDevices, ResultsComeInTheOrderOfTheCallersStream) {
  ARGOSY_SKIP_OVER_NCCL();
  if (is_cuda()) {
    GTEST_SKIP() << "only the second device tells in which stream it was written";
  }
  with_threads(2, [&](Group& world) {
    const at::Device own = device(world.rank());
    const at::Tensor t = at::ones({3}, own);
    const at::Tensor other = at::ones({3}, own);
    EXPECT_NE(test::side_stream(own), test::stream_of_last_copy_to(own));
    (void)t.cpu();  // so that the side need not wait for it
    Work work;
    {
      const c10::StreamGuard on_the_side(test::side_stream(own));
      work = all_reduce_async(t, world);
    }
    work.wait();  // another thread has made the copy
    EXPECT_EQ(test::stream_of_last_copy_to(own), test::side_stream(own));
    all_reduce(other, world);
    EXPECT_NE(test::stream_of_last_copy_to(own), test::side_stream(own));
  });
}

ARGOSY_ON_DEVICES(CommOnDevices);

}  // namespace
}  // namespace argosy::comm
