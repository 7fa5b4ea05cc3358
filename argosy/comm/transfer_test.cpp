/// Point to point, as threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/collectives.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using ::testing::HasSubstr;
using testing::with_threads;

TEST(Transfer, BlockingSendAndReceive) {
  with_threads(2, [](Group& world) {
    at::Tensor t = at::full({3, 4}, world.rank(), at::kDouble).t();  // strided on both sides
    if (world.rank() == 0) {
      send(t, 1, world);
    } else {
      recv(t, 0, world);
    }
    EXPECT_TRUE(t.equal(at::zeros({4, 3}, at::kDouble)));
  });
}

TEST(Transfer, TagsMayCross) {
  with_threads(2, [](Group& world) {
    const int peer = 1 - world.rank();
    std::vector<at::Tensor> sent;
    std::vector<at::Tensor> received;
    std::vector<Work> works;
    constexpr uint32_t kTags = 6;
    for (uint32_t tag = 0; tag < kTags; ++tag) {
      sent.push_back(at::full({5}, 100 * world.rank() + static_cast<int>(tag), at::kLong));
      received.push_back(at::empty({5}, at::kLong));
      works.push_back(send_async(sent.back(), peer, world, {.tag = tag}));
    }
    for (uint32_t i = 0; i < kTags; ++i) {  // received in the opposite order
      const uint32_t tag = kTags - 1 - i;
      works.push_back(recv_async(received[tag], peer, world, {.tag = tag}));
    }
    for (const Work& work : works) {
      work.wait();
    }
    for (uint32_t tag = 0; tag < kTags; ++tag) {
      EXPECT_TRUE(
          received[tag].equal(at::full({5}, 100 * peer + static_cast<int>(tag), at::kLong)));
    }
  });
}

TEST(Transfer, CompletesWhileAnEarlierOneStillWaits) {
  with_threads(2, [](Group& world) {
    at::Tensor first = at::zeros({2});
    at::Tensor second = at::zeros({2});
    if (world.rank() == 0) {
      const Work late = recv_async(first, 1, world, {.tag = 1});
      const Work early = recv_async(second, 1, world, {.tag = 2});
      early.wait();
      EXPECT_FALSE(late.is_completed());
      EXPECT_TRUE(second.equal(at::full({2}, 2.0F)));
      send(second, 1, world, {.tag = 3});  // only now does the other send tag 1
      late.wait();
      EXPECT_TRUE(first.equal(at::ones({2})));
    } else {
      send(at::full({2}, 2.0F), 0, world, {.tag = 2});
      recv(first, 0, world, {.tag = 3});
      send(at::ones({2}), 0, world, {.tag = 1});
    }
  });
}

TEST(Transfer, RunsBesideACollective) {
  with_threads(2, [](Group& world) {
    at::Tensor received = at::zeros({1});
    const int peer = 1 - world.rank();
    const Work in = recv_async(received, peer, world);
    at::Tensor sum = at::ones({1});
    all_reduce(sum, world);
    const Work out = send_async(sum, peer, world);
    in.wait();
    out.wait();
    EXPECT_EQ(received.item<float>(), 2);
  });
}

TEST(Transfer, TimeoutNamesThePeer) {
  with_threads(3, [](Group& world) {
    if (world.rank() != 0) {
      return;
    }
    at::Tensor t = at::zeros({1});
    const Work work = recv_async(t, 2, world, {.tag = 9, .timeout = 200ms});
    try {
      work.wait();
      ADD_FAILURE() << "it arrived";
    } catch (const CommError& e) {
      EXPECT_THAT(e.peers(), ::testing::ElementsAre(2)) << e.what();
      EXPECT_THAT(e.what(), HasSubstr("recv with rank 2, tag 9, 4 B"));
    }
  });
}

TEST(Transfer, RefusesWrongPeersAndTags) {
  with_threads(2, [](Group& world) {
    at::Tensor t = at::zeros({1});
    EXPECT_THAT(error_text<UsageError>([&] { send(t, 2, world); }),
                HasSubstr("[comm.send] peer 2 is not in group \"world\": expected 0 to 1"));
    EXPECT_THAT(error_text<UsageError>([&] { recv(t, world.rank(), world); }),
                HasSubstr("is this rank itself"));
    EXPECT_THAT(error_text<UsageError>(
                    [&] { (void)send_async(t, 1 - world.rank(), world, {.tag = 1U << 31}); }),
                HasSubstr("tag 2147483648 is too large"));
  });
}

}  // namespace
}  // namespace argosy::comm
