/// NCCL between ranks that are processes: over the fake library on the second device, over the real
/// one on CUDA, where ranks share a card if there are fewer (see card_over_nccl).
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/init.h"
#include "argosy/optim/adam.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/held_stream.h"
#include "tests/support/on_devices.h"
#include "tests/support/run_ranks.h"
#include "tests/support/shared_counter.h"
#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using namespace std::chrono_literals;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::values;

/// Until then all processes are killed, so an error that is only found by a longer timeout is none.
constexpr auto kDeadline = 60s;
constexpr auto kLong = 300s;

/// Counts a rank that has ended, however it did.
class GivenUp final {
 public:
  explicit GivenUp(test::SharedCounter& ranks) : ranks_(ranks) {}
  ~GivenUp() { ranks_.add(1); }
  GivenUp(const GivenUp&) = delete;
  GivenUp& operator=(const GivenUp&) = delete;
  GivenUp(GivenUp&&) = delete;
  GivenUp& operator=(GivenUp&&) = delete;

 private:
  test::SharedCounter& ranks_;
};

class NcclInProcesses : public test::OnDevicesInProcesses {
 protected:
  using Body = std::function<void(const comm::Group&, at::Device)>;

  [[nodiscard]] std::vector<test::RankOutcome> try_run(int ranks,
                                                       std::chrono::milliseconds timeout,
                                                       const Body& body,
                                                       const char* mode = "native") const {
    const auto own = [&](int rank) {
      ::setenv("ARGOSY_NCCL_MODE", mode, 1);
      return device_over_nccl(rank, ranks);
    };
    return try_run_on(own, ranks, timeout, body);
  }
  /// What a rank may need to come, on a machine that others keep busy.
  [[nodiscard]] std::chrono::seconds soon() const { return is_cuda() ? 15s : 4s; }
  void run(int ranks, const Body& body) const { expect_ok(try_run(ranks, kLong, body)); }
  /// `own(rank)` is called in the rank, before anything else.
  [[nodiscard]] std::vector<test::RankOutcome> try_run_on(const std::function<at::Device(int)>& own,
                                                          int ranks,
                                                          std::chrono::milliseconds timeout,
                                                          const Body& body) const {
    const test::TempDir folder;
    return test::try_run_ranks(
        ranks,
        [&](int rank) {
          torch::set_num_threads(1);
          if (!is_cuda()) {
            ::setenv("ARGOSY_NCCL_LIBRARY", ARGOSY_FAKE_NCCL, 1);
          }
          const at::Device device = own(rank);
          body(comm::connect({.backend = "cpu:shm,cuda:nccl",
                              .store = rendezvous::file_store((folder.path() / "store").string()),
                              .rank = rank,
                              .size = ranks,
                              .timeout = timeout}),
               device);
        },
        {.mode = test::RankMode::kProcesses, .deadline = kDeadline});
  }
  static void expect_ok(const std::vector<test::RankOutcome>& outcomes) {
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.ok()) << describe(outcome);
    }
  }
  static void expect_all_blame(const std::vector<test::RankOutcome>& outcomes,
                               int culprit,
                               const std::string& what) {
    for (const test::RankOutcome& outcome : outcomes) {
      if (outcome.rank != culprit) {
        EXPECT_THAT(outcome.peers, ElementsAre(culprit)) << describe(outcome);
        EXPECT_THAT(outcome.error, ContainsRegex(what)) << describe(outcome);
      }
    }
  }
};

/// A tensor that libtorch's allocator knows nothing of.
TEST_P(NcclInProcesses, KeepForeignMemoryUntilTheDeviceHasPassed) {
  run(2, [](const comm::Group& world, at::Device own) {
    const at::Tensor memory = at::ones({100}, at::TensorOptions(own));
    comm::all_reduce(memory.clone(), world);  // connects
    std::atomic<bool> gone{false};
    test::HeldStream held(c10::impl::VirtualGuardImpl(own.type()).getStream(own));
    const comm::Work work = comm::all_reduce_async(at::for_blob(memory.data_ptr(), {100})
                                                       .deleter([&](void*) { gone = true; })
                                                       .target_device(own)
                                                       .options(memory.options())
                                                       .make_tensor(),
                                                   world);
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(work.is_completed());
    EXPECT_FALSE(gone);
    held.release();
    work.wait(10s);
    EXPECT_TRUE(gone);
    EXPECT_TRUE(memory.cpu().equal(at::full({100}, 2.0F)));
  });
}

/// What is copied back behind a collective goes to where nothing else is by then.
TEST_P(NcclInProcesses, LeaveTheMemoryOfATensorThatIsGone) {
  run(2, [](const comm::Group& world, at::Device own) {
    for (int round = 0; round < 30; ++round) {
      const comm::Work work = comm::all_reduce_async(
          at::ones({64, 128}, at::TensorOptions(own)).slice(1, 0, 64), world);
      at::Tensor next;
      for (int again = 0; again < 8; ++again) {
        next = at::full({64, 128}, 5.0F, at::TensorOptions(own));
        std::this_thread::sleep_for(500us);
      }
      work.wait();
      EXPECT_TRUE(next.cpu().equal(at::full({64, 128}, 5.0F))) << "round " << round;
    }
  });
}

/// To NCCL they are hosts, and so to us: see NcclTransport::check_devices().
TEST_P(NcclInProcesses, ShareADeviceIfEachHasAHostIdOfItsOwn) {
  const auto as_hosts = [&](int rank) {
    ::setenv("NCCL_HOSTID", ("host of rank " + std::to_string(rank)).c_str(), 1);
    return device(0);
  };
  expect_ok(try_run_on(as_hosts, 3, kLong, [](const comm::Group& world, at::Device own) {
    const at::Tensor sum = at::full({1000}, world.rank() + 1.0F, at::TensorOptions(own));
    comm::all_reduce(sum, world);
    EXPECT_TRUE(sum.cpu().equal(at::full({1000}, 6.0F)));
  }));
}

TEST_P(NcclInProcesses, OfOneHostAreRefusedOnOneDevice) {
  for (const char* const host : {"", "one for both"}) {
    const auto on_one = [&](int) {
      ::setenv("NCCL_HOSTID", host, 1);
      return device(0);
    };
    const auto outcomes =
        try_run_on(on_one, 2, kLong, [](const comm::Group& world, at::Device own) {
          comm::all_reduce(at::ones({3}, at::TensorOptions(own)), world);
        });
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.error_type, "argosy::ConfigError") << describe(outcome);
      EXPECT_THAT(outcome.error, HasSubstr("rank 0 and rank 1 are on one device of their host"));
    }
  }
}

/// Trains until something fails. `within(step)` is called in backward, when the last layer's
/// gradients have come and the first one's have not.
void train(const comm::Group& group,
           at::Device device,
           const std::function<void(int64_t step)>& within) {
  int64_t step = 0;
  const auto hooked = [&](const at::Tensor& hidden) {
    if (hidden.requires_grad()) {
      hidden.register_hook([&](const at::Tensor&) { within(step); });
    }
    return hidden;
  };
  torch::nn::Linear in(16, 32), out(32, 4);
  torch::nn::Sequential net(in, torch::nn::Functional(hooked), torch::nn::Tanh(), out);
  testing::fill(*net, 1);
  net->to(device);
  DistributedDataParallel model(net, group, {.first_bucket_bytes = 64, .bucket_cap_bytes = 64});
  optim::Adam optimizer(model, {.lr = 0.01});
  const at::Tensor x = values({8, 16}, group.rank(), at::kFloat).to(device);
  for (;; ++step) {
    const at::Tensor loss = model(x).pow(2).mean();
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    (void)loss.item<float>();  // reads the device, as loops that print their loss do
  }
}

constexpr int kCulprit = 1;
constexpr int64_t kFatalStep = 3;

/// In the middle of a step, in NCCL's own mode and in the exact one.
TEST_P(NcclInProcesses, NameARankThatIsKilledInATraining) {
  for (const char* const mode : {"native", "exact"}) {
    const auto outcomes = try_run(
        3,
        kLong,
        [&](const comm::Group& group, at::Device own) {
          train(group, own, [&](int64_t step) {
            if (group.rank() == kCulprit && step == kFatalStep) {
              ::raise(SIGKILL);
            }
          });
        },
        mode);
    EXPECT_EQ(outcomes[kCulprit].signal, SIGKILL) << mode;
    expect_all_blame(outcomes, kCulprit, "rank 1 (died|is gone)");
  }
}

/// A rank that hangs: the others' step ends at the deadline, in whatever asks the group next.
TEST_P(NcclInProcesses, NameARankThatDoesNotComeToAStep) {
  test::SharedCounter given_up;
  const auto outcomes = try_run(3, soon(), [&](const comm::Group& group, at::Device own) {
    if (group.rank() != kCulprit) {
      const GivenUp at_the_end(given_up);
      train(group, own, [](int64_t) {});
    }
    try {
      train(group, own, [&](int64_t step) {
        if (step == kFatalStep) {
          EXPECT_TRUE(given_up.wait_for(2));
          throw std::runtime_error("it has hung");
        }
      });
    } catch (const std::exception&) {  // of what the others have left
    }
  });
  expect_all_blame(outcomes, kCulprit, "timed out .*waiting for rank 1");
  EXPECT_TRUE(outcomes[kCulprit].ok()) << describe(outcomes[kCulprit]);
}

/// It is in the group, and never asks for NCCL: the others have no communicator without it.
TEST_P(NcclInProcesses, NameARankThatDoesNotComeToTheFirstCollective) {
  test::SharedCounter given_up;
  const auto outcomes = try_run(3, soon(), [&](const comm::Group& group, at::Device own) {
    if (group.rank() == kCulprit) {
      EXPECT_TRUE(given_up.wait_for(2));
      return;
    }
    const GivenUp at_the_end(given_up);
    comm::all_reduce(at::ones({3}, at::TensorOptions(own)), group);
  });
  expect_all_blame(outcomes, kCulprit, "timed out .*waiting for rank 1");
  EXPECT_TRUE(outcomes[kCulprit].ok()) << describe(outcomes[kCulprit]);
}

ARGOSY_ON_DEVICES(NcclInProcesses);

}  // namespace
}  // namespace argosy::parallel
