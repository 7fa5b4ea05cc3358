/// What a divided model communicates on devices goes through streams of its own, over NCCL: the
/// next unit's gather and the last unit's reduction run beside the computation, and neither of the
/// two waits for the other.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/hooks.h"
#include "argosy/comm/init.h"
#include "argosy/optim/sgd.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/parallel/sharded/fully_shard.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/held_stream.h"
#include "tests/support/on_devices.h"
#include "tests/support/run_ranks.h"
#include "tests/support/shared_counter.h"
#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using testing::values;

constexpr std::string_view kGather = "all_gather";
constexpr std::string_view kReduction = "reduce_scatter";

/// Counts this rank's operations since the last reset(): those that are queued, and those that the
/// device has passed.
class Course final : public comm::Hook {
 public:
  void on_enqueued(const comm::OperationEvent& event) override { count(queued_, event.op); }
  void on_ended(const comm::OperationEvent& event) override { count(ended_, event.op); }

  /// Once the device has passed all that is queued.
  void reset() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] {
      return std::ranges::all_of(
          queued_, [&](const auto& each) { return number(ended_, each.first) >= each.second; });
    }));
    queued_.clear();
    ended_.clear();
  }
  [[nodiscard]] int queued(std::string_view op) const {
    const std::lock_guard lock(mutex_);
    return number(queued_, op);
  }
  [[nodiscard]] int ended(std::string_view op) const {
    const std::lock_guard lock(mutex_);
    return number(ended_, op);
  }
  /// Waits until the device has passed so many. False: it has not.
  [[nodiscard]] bool wait_for_end(std::string_view op, int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return number(ended_, op) >= count; });
  }

 private:
  using Counts = std::map<std::string, int, std::less<>>;
  static constexpr std::chrono::seconds kPatience{20};  // less than a HeldStream holds

  [[nodiscard]] static int number(const Counts& counts, std::string_view op) {
    const auto found = counts.find(op);
    return found == counts.end() ? 0 : found->second;
  }
  void count(Counts& counts, std::string_view op) {
    const std::lock_guard lock(mutex_);
    ++counts[std::string(op)];
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Counts queued_, ended_;
};

/// Blocks of two layers, each of them a unit. It says how far it has come.
struct WatchedImpl : torch::nn::Module {
  WatchedImpl() {
    blocks = register_module("blocks", torch::nn::ModuleList());
    for (int i = 0; i < kBlocks; ++i) {
      blocks->push_back(torch::nn::Sequential(torch::nn::Linear(kWidth, kWidth),
                                              torch::nn::Linear(kWidth, kWidth)));
    }
    testing::fill(*this, 1);
  }
  torch::Tensor forward(torch::Tensor x) {
    for (int i = 0; i < kBlocks; ++i) {
      auto& block = *blocks[static_cast<size_t>(i)]->as<torch::nn::Sequential>();
      x = block[0]->as<torch::nn::Linear>()->forward(x).tanh();
      within(i);
      x = block[1]->as<torch::nn::Linear>()->forward(x);
      x.register_hook([this, i](const at::Tensor&) { arrived(i); });
    }
    return x;
  }
  static constexpr int kBlocks = 3;
  static constexpr int kWidth = 16;
  torch::nn::ModuleList blocks{nullptr};
  std::function<void(int block)> within = [](int) {};   // half of it is queued, forward
  std::function<void(int block)> arrived = [](int) {};  // the gradient of its result is queued
};
TORCH_MODULE(Watched);

c10::Stream computing_on(at::Device own) {
  return c10::impl::VirtualGuardImpl(own.type()).getStream(own);
}

class ShardedStreamsOverNccl : public test::OnDevicesInProcesses {
 protected:
  struct Rank {
    int number;
    at::Device own;
    Course& course;
  };
  /// Some steps of two ranks. `watch` says what is looked at in the last one: by then the pool has
  /// learned which unit follows which, and NCCL has connected.
  void train(const ShardOptions& shard,
             const std::function<void(WatchedImpl&, const Rank&)>& watch) const {
    const test::TempDir folder;
    test::run_ranks(
        2,
        [&](int rank) {
          torch::set_num_threads(1);
          if (!is_cuda()) {
            ::setenv("ARGOSY_NCCL_LIBRARY", ARGOSY_FAKE_NCCL, 1);
          }
          const at::Device own = device_over_nccl(rank, 2);
          const comm::Group world =
              comm::connect({.backend = "cpu:shm,cuda:nccl",
                             .store = rendezvous::file_store((folder.path() / "store").string()),
                             .rank = rank,
                             .size = 2,
                             .timeout = std::chrono::seconds(50)});
          const auto course = std::make_shared<Course>();
          add_hook(world, course);
          Watched net;
          net->to(own);
          auto model = fully_shard(net, world, {.shard = shard});
          optim::SGD optimizer(model, {.lr = 0.1});
          ASSERT_TRUE(model.divide_step(optimizer));
          for (int step = 0; step < 3; ++step) {
            computing_on(own).synchronize();
            course->reset();
            if (step == 2) {
              watch(*net, {rank, own, *course});
            }
            const at::Tensor x = values({4, WatchedImpl::kWidth}, rank + 2.0 * step, at::kFloat);
            model(x.to(own)).square().mean().backward();
            optimizer.step();
            optimizer.zero_grad();
          }
          (void)model.parameters()[0].cpu();  // throws what the device has found out
          remove_hook(world, course);
        },
        {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(55)});
  }
};

/// Held in the middle of a block, the device still gathers the next one.
TEST_P(ShardedStreamsOverNccl, TheNextUnitComesBeforeThisOneIsComputed) {
  train({.unit_bytes = 0}, [](WatchedImpl& net, const Rank& rank) {
    net.within = [=](int block) {
      const int known = std::min(block + 2, WatchedImpl::kBlocks);
      EXPECT_EQ(rank.course.queued(kGather), known) << "this one and the next";
      if (block == 1) {
        const c10::Stream computing = computing_on(rank.own);
        const test::HeldStream held(computing);
        EXPECT_TRUE(rank.course.wait_for_end(kGather, known));
        EXPECT_FALSE(computing.query());
      }
    };
  });
}

/// The other rank has not come to it, so the next unit cannot be there.
TEST_P(ShardedStreamsOverNccl, AUnitIsComputedBeforeTheNextOneHasCome) {
  test::SharedCounter computed;
  train({.unit_bytes = 0}, [&](WatchedImpl& net, const Rank& rank) {
    net.within = [=, &computed](int block) {
      if (rank.number == 1 && block == 0) {
        EXPECT_TRUE(computed.wait_for(1));
      }
      if (rank.number == 0 && block == 1) {
        EXPECT_EQ(rank.course.queued(kGather), 3);
        computing_on(rank.own).synchronize();
        EXPECT_LE(rank.course.ended(kGather), 2);
        computed.add(1);
      }
    };
  });
}

/// Held before the first block's backward, the device still reduces the gradients of the last one.
TEST_P(ShardedStreamsOverNccl, TheLastUnitIsReducedBeforeBackwardIsAtTheFirst) {
  train({.unit_bytes = 0}, [](WatchedImpl& net, const Rank& rank) {
    net.arrived = [=](int block) {
      if (block == 0) {
        const c10::Stream computing = computing_on(rank.own);
        const test::HeldStream held(computing);
        EXPECT_EQ(rank.course.queued(kReduction), 2) << "of the other blocks";
        EXPECT_TRUE(rank.course.wait_for_end(kReduction, 1));
        EXPECT_FALSE(computing.query());
      }
    };
  });
}

/// The other rank has no gradients yet, so none is reduced. All units are whole: nothing else is
/// wanted of it.
TEST_P(ShardedStreamsOverNccl, BackwardComesToTheFirstUnitBeforeTheLastIsReduced) {
  test::SharedCounter computed;
  const int last = WatchedImpl::kBlocks - 1;
  train({.unit_bytes = 0, .reshard_after_forward = false}, [&](WatchedImpl& net, const Rank& rank) {
    net.arrived = [=, &computed](int block) {
      if (rank.number == 1 && block == last) {
        EXPECT_TRUE(computed.wait_for(1));
      }
      if (rank.number == 0 && block == 0) {
        EXPECT_EQ(rank.course.queued(kReduction), 2) << "of the other blocks";
        computing_on(rank.own).synchronize();
        EXPECT_EQ(rank.course.ended(kReduction), 0);
        computed.add(1);
      }
    };
  });
}

ARGOSY_ON_DEVICES(ShardedStreamsOverNccl);

}  // namespace
}  // namespace argosy::parallel
