/// The collectives over gloo, between processes that meet in a file store. The closed forms of all
/// of them are in argosy/comm/collectives_test.cpp; here the same code meets real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/comm.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;

class ProcessesTest : public ::testing::TestWithParam<int> {
 protected:
  void run(const std::function<void(Group&)>& fn) {
    const int n = GetParam();
    const test::TempDir folder;
    test::run_ranks(n,
                    [&](int rank) {
                      Group world =
                          init({.init_method = "file://" + (folder.path() / "store").string(),
                                .timeout = 30s,
                                .rank = rank,
                                .world_size = n});
                      ASSERT_EQ(world.rank(), rank);
                      ASSERT_EQ(world.size(), n);
                      fn(world);
                    },
                    {.mode = test::RankMode::kProcesses, .deadline = 60s});
  }
};

TEST_P(ProcessesTest, ReduceAndMove) {
  run([](Group& world) {
    const int n = world.size();
    const int me = world.rank();
    at::Tensor sum = at::full({3, 4}, me + 1, at::kDouble);
    all_reduce(sum, world);
    EXPECT_TRUE(sum.equal(at::full({3, 4}, n * (n + 1) / 2, at::kDouble)));
    at::Tensor large = at::full({1 << 18}, me, at::kFloat);
    broadcast(large, world, {.root = n - 1});
    EXPECT_TRUE(large.equal(at::full({1 << 18}, n - 1, at::kFloat)));
    const auto parts = all_gather(at::full({2}, me, at::kLong), world);
    EXPECT_EQ(parts.back()[0].item<int64_t>(), n - 1);
    EXPECT_EQ(all_gather_uneven(at::ones({me, 2}), world).size(0), n * (n - 1) / 2);
    const auto texts = all_gather_object(std::string(1U + me, 'x'), world);
    EXPECT_EQ(texts.back().size(), static_cast<size_t>(n));
    std::vector<at::Tensor> inputs(static_cast<size_t>(n), at::full({2}, me, at::kInt));
    at::Tensor mine = at::empty({2}, at::kInt);
    reduce_scatter(mine, inputs, world);
    EXPECT_EQ(mine[0].item<int>(), n * (n - 1) / 2);
    barrier(world);
  });
}

TEST_P(ProcessesTest, AsyncOrderAndTransfers) {
  run([](Group& world) {
    const int n = world.size();
    const int me = world.rank();
    std::vector<at::Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      tensors.push_back(at::full({100}, i, at::kLong));
      works.push_back(all_reduce_async(tensors.back(), world));
    }
    if (n > 1) {  // a ring, tags received in the opposite order
      at::Tensor a = at::zeros({1});
      at::Tensor b = at::zeros({1});
      const int next = (me + 1) % n;
      const int previous = (me + n - 1) % n;
      std::vector<Work> ring = {send_async(at::full({1}, 1.0F), next, world, {.tag = 1}),
                                send_async(at::full({1}, 2.0F), next, world, {.tag = 2}),
                                recv_async(b, previous, world, {.tag = 2}),
                                recv_async(a, previous, world, {.tag = 1})};
      for (const Work& work : ring) {
        work.wait();
      }
      EXPECT_EQ(a.item<float>(), 1);
      EXPECT_EQ(b.item<float>(), 2);
    }
    for (const Work& work : works) {
      work.wait(30s);
    }
    EXPECT_EQ(tensors.back()[99].item<int64_t>(), 19 * n);
  });
}

TEST_P(ProcessesTest, SubGroupsWhenSomeAreNotMembers) {
  run([](Group& world) {
    const int me = world.rank();
    const Group odd = world.split({.color = me % 2 == 1 ? 1 : -1});
    const Group first = world.new_group({0});
    if (odd.rank() >= 0) {
      at::Tensor t = at::ones({1});
      all_reduce(t, odd);
      EXPECT_EQ(t.item<float>(), static_cast<float>(odd.size()));
    }
    EXPECT_EQ(first.rank(), me == 0 ? 0 : -1);
    // One rank leaves at once while its last data is still on the way to the others.
    at::Tensor large = at::full({1 << 20}, me, at::kFloat);
    broadcast(large, world);
    world.destroy();
    EXPECT_EQ(large[12345].item<float>(), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ProcessesTest, ::testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace argosy::comm
