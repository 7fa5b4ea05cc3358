/// Transfers through the group's core, torch-free so that ThreadSanitizer sees all of it.
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using testing::with_threads;
using transport::Transport;

GroupState::StartTransfer sending(const int& value, int peer, uint32_t tag) {
  return [&value, peer, tag](Transport& transport) {
    return transport.send(&value, sizeof(value), peer, tag);
  };
}
GroupState::StartTransfer receiving(int& value, int peer, uint32_t tag) {
  return [&value, peer, tag](Transport& transport) {
    return transport.recv(&value, sizeof(value), peer, tag);
  };
}

/// A message is at no place of a training, and takes none away from the collectives.
TEST(GroupTransfer, BetweenTwoOfThreeLeavesThePlaceOfReductionsAlone) {
  with_threads(
      3,
      [](Group& world) {
        const auto reduce = [&](uint32_t update) {
          float value = 1;
          world.state().run({.op = "all_reduce",
                             .place = {.update = update, .pass = 1},
                             .signature = "all_reduce"},
                            {},
                            [&](Transport& transport, const Deadline& deadline) {
                              transport.all_reduce(&value,
                                                   1,
                                                   transport::DType::kF32,
                                                   transport::ReduceOp::kSum,
                                                   deadline.remaining());
                            });
          EXPECT_EQ(value, 3);
        };
        reduce(1);
        int value = 7;
        if (world.rank() == 0) {
          world.state().run_transfer({.op = "send", .peer = 1}, {}, sending(value, 1, 1), [] {});
        } else if (world.rank() == 1) {
          world.state().run_transfer({.op = "recv", .peer = 0}, {}, receiving(value, 0, 1), [] {});
        }
        reduce(2);
      },
      {.checked = true});
}

TEST(GroupTransfer, ManyAtOnceInOppositeOrder) {
  with_threads(3, [](Group& world) {
    constexpr int kTags = 8;
    const int next = (world.rank() + 1) % 3;
    const int previous = (world.rank() + 2) % 3;
    std::array<int, kTags> out{};
    std::array<int, kTags> in{};
    std::atomic<int> finished{0};
    std::vector<Work> works;
    for (int tag = 0; tag < kTags; ++tag) {
      out.at(tag) = 100 * world.rank() + tag;
      works.push_back(
          world.state().submit_transfer({.op = "send", .peer = next, .tag = tag},
                                        {},
                                        sending(out.at(tag), next, static_cast<uint32_t>(tag)),
                                        [&] { ++finished; }));
    }
    for (int tag = kTags - 1; tag >= 0; --tag) {
      works.push_back(
          world.state().submit_transfer({.op = "recv", .peer = previous, .tag = tag},
                                        {},
                                        receiving(in.at(tag), previous, static_cast<uint32_t>(tag)),
                                        [&] { ++finished; }));
    }
    for (const Work& work : works) {
      work.wait();
    }
    EXPECT_EQ(finished, 2 * kTags);
    for (int tag = 0; tag < kTags; ++tag) {
      EXPECT_EQ(in.at(tag), 100 * previous + tag);
    }
  });
}

/// Two transfers of two threads that must both be announced before either goes on.
class MeetingHook final : public Hook {
 public:
  void on_enqueued(const OperationEvent& event) override {
    if (event.op == "send") {
      std::unique_lock lock(mutex_);
      ++here_;
      changed_.notify_all();
      EXPECT_TRUE(changed_.wait_for(lock, 10s, [this] { return here_ == 2; }));
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int here_ = 0;
};

TEST(GroupTransfer, HooksRunWithoutALock) {
  with_threads(2, [](Group& world) {
    std::array<int, 2> values{5, 6};
    if (world.rank() == 0) {
      add_hook(world, std::make_shared<MeetingHook>());
      const auto send = [&](uint32_t tag) {
        world.state()
            .submit_transfer(
                {.op = "send", .peer = 1, .tag = tag}, {}, sending(values.at(tag), 1, tag), [] {})
            .wait();
      };
      std::thread other([&] { send(1); });
      send(0);
      other.join();
    } else {
      std::array<int, 2> in{};
      for (const uint32_t tag : {0U, 1U}) {
        world.state().run_transfer(
            {.op = "recv", .peer = 0, .tag = tag}, {}, receiving(in.at(tag), 0, tag), [] {});
      }
      EXPECT_EQ(in, values);
    }
  });
}

TEST(GroupTransfer, DestroyWakesWhoeverWaits) {
  with_threads(2,
               [](Group& world) {
                 if (world.rank() == 1) {
                   // Never sends; stays until rank 0 has gone.
                   int value = 0;
                   EXPECT_THROW(
                       world.state().run_transfer(
                           {.op = "recv", .peer = 0, .tag = 9}, 20s, receiving(value, 0, 9), [] {}),
                       CommError);
                   return;
                 }
                 int first = 0;
                 int second = 0;
                 const Work pending = world.state().submit_transfer(
                     {.op = "recv", .peer = 1, .tag = 1}, {}, receiving(first, 1, 1), [] {});
                 std::thread blocked([&] {
                   try {
                     world.state().run_transfer(
                         {.op = "recv", .peer = 1, .tag = 2}, {}, receiving(second, 1, 2), [] {});
                     ADD_FAILURE() << "it arrived";
                   } catch (const Error&) {
                     // CommError when it was waiting, UsageError when destroy() came first.
                   }
                 });
                 world.destroy();
                 blocked.join();
                 EXPECT_TRUE(pending.is_completed());
                 EXPECT_FALSE(pending.is_success());
               },
               {.timeout = 200ms});
}

}  // namespace
}  // namespace argosy::comm
