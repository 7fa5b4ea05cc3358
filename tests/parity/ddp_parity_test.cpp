// N ranks with b samples each against one process with N*b, in processes over Gloo. The parent
// never uses libtorch: forking after that hangs (see run_ranks.h).
#include <algorithm>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/comm/comm.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/parity/ddp_cases.h"
#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"

namespace argosy::parity {
namespace {

using namespace std::chrono_literals;
using parallel::DistributedDataParallel;

constexpr int kSteps = 50;

comm::Group connect(const std::string& folder, int rank, int size) {
  return comm::connect({.backend = "gloo",
                        .store = rendezvous::file_store(folder),
                        .rank = rank,
                        .size = size,
                        .timeout = 60s});
}

/// FNV-1a over the bits, in logical order.
uint64_t hash_of(const std::vector<at::Tensor>& tensors) {
  uint64_t hash = 14695981039346656037ULL;
  for (const auto& tensor : tensors) {
    if (!tensor.defined()) {
      continue;
    }
    const at::Tensor dense = tensor.contiguous();
    const auto* bytes = static_cast<const unsigned char*>(dense.data_ptr());
    for (size_t k = 0; k < dense.nbytes(); ++k) {
      hash = (hash ^ bytes[k]) * 1099511628211ULL;
    }
  }
  return hash;
}

std::vector<at::Tensor> trainable_once(const Net& net) {
  std::vector<at::Tensor> once;
  for (const auto& parameter : net->parameters()) {
    if (parameter.requires_grad() &&
        std::none_of(once.begin(), once.end(), [&](auto& o) { return o.is_same(parameter); })) {
      once.push_back(parameter);
    }
  }
  return once;
}

void expect_equal_on_all_ranks(uint64_t hash, const comm::Group& group, const std::string& what) {
  const at::Tensor mine = at::full({1}, static_cast<int64_t>(hash), torch::kLong);
  for (const auto& each : comm::all_gather(mine, group)) {
    ASSERT_TRUE(each.equal(mine)) << what;
  }
}

void step_distributed(DistributedDataParallel<Net>& model, const Case& c, int step) {
  const int rank = model.group().rank();
  for (int micro = 0; micro < c.micro_batches; ++micro) {
    const bool last = micro + 1 == c.micro_batches;
    auto sync = last ? std::optional<parallel::NoSync>() : model.no_sync();
    const Batch batch = batch_of(c, step, micro, rank);
    loss_of(model, c, batch, uses_branch(c, step, rank)).backward();
  }
}

void run_case(const Case& c, const comm::Group& group) {
  SCOPED_TRACE(c.name);
  DistributedDataParallel model(Net(c), group, c.options);
  Net alone(c);
  const auto parameters = trainable_once(model.module());
  for (int step = 0; step < kSteps; ++step) {
    step_distributed(model, c, step);
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : parameters) {
      gradients.push_back(parameter.grad());
      if (c.channels_last) {
        ASSERT_EQ(parameter.grad().strides(), parameter.strides());
      }
    }
    expect_equal_on_all_ranks(hash_of(gradients), group, c.name + ": gradients");
    descend(parameters, c.zero_in_place);
    step_alone(alone, c, step, group.size());
  }
  expect_equal_on_all_ranks(hash_of(model.parameters()), group, c.name + ": parameters");
  const auto expected = alone->named_parameters();
  for (const auto& item : model.named_parameters()) {
    const double distance =
        (item.value() - expected[item.key()]).abs().max().template item<double>();
    // f32 rounds each of the 50 updates to 6e-8.
    EXPECT_LT(distance, c.mixed ? 1e-5 : 1e-6) << item.key();
  }
  EXPECT_EQ(model.stats().rebuilt, !c.options.find_unused_parameters);
}

TEST(DdpParity, RanksTogetherMatchOneProcess) {
  for (int ranks : {2, 4}) {
    const test::TempDir folder;
    test::run_ranks(ranks,
                    [&](int rank) {
                      at::set_num_threads(1);
                      const comm::Group group = connect(folder.path() / "store", rank, ranks);
                      for (const Case& c : cases()) {
                        run_case(c, group);
                      }
                    },
                    {.mode = test::RankMode::kProcesses, .deadline = 120s});
  }
}

TEST(DdpParity, OneRankIsLibtorchToTheBit) {
  const test::TempDir folder;
  test::run_ranks(1,
                  [&](int rank) {
                    at::set_num_threads(1);
                    const comm::Group group = connect(folder.path() / "store", rank, 1);
                    for (const Case& c : cases()) {
                      SCOPED_TRACE(c.name);
                      DistributedDataParallel model(Net(c), group, c.options);
                      Net plain(c);
                      for (int step = 0; step < kSteps; ++step) {
                        const Batch batch = batch_of(c, step, 0, 0);
                        const at::Tensor a = model(batch.images, true);
                        const at::Tensor b = plain(batch.images, true);
                        ASSERT_TRUE(a.equal(b));
                        torch::mse_loss(a, batch.targets).backward();
                        torch::mse_loss(b, batch.targets).backward();
                        const auto mine = trainable_once(model.module());
                        const auto theirs = trainable_once(plain);
                        for (size_t k = 0; k < mine.size(); ++k) {
                          ASSERT_TRUE(mine[k].grad().equal(theirs[k].grad())) << k;
                        }
                        descend(mine, c.zero_in_place);
                        descend(theirs, c.zero_in_place);
                        for (size_t k = 0; k < mine.size(); ++k) {
                          ASSERT_TRUE(mine[k].equal(theirs[k])) << k;
                        }
                      }
                    }
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = 60s});
}

TEST(DdpParity, ARankThatDiesInBackwardIsNamedByAllOthers) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      4,
      [&](int rank) {
        at::set_num_threads(1);
        const Case c{.options = {.first_bucket_bytes = 1, .bucket_cap_bytes = 1}};
        DistributedDataParallel model(Net(c), connect(folder.path() / "store", rank, 4), c.options);
        for (int step = 0; step < 3; ++step) {
          const Batch batch = batch_of(c, step, 0, rank);
          auto output = model(batch.images, true);
          if (rank == 2 && step == 1) {
            model->a->weight.register_hook([](const at::Tensor& gradient) {
              raise(SIGKILL);
              return gradient;
            });
          }
          torch::mse_loss(output, batch.targets).backward();
          descend(trainable_once(model.module()), true);
        }
      },
      {.mode = test::RankMode::kProcesses, .deadline = 60s});
  EXPECT_EQ(outcomes[2].signal, SIGKILL);
  for (int rank : {0, 1, 3}) {
    EXPECT_THAT(outcomes[static_cast<size_t>(rank)].peers, ::testing::ElementsAre(2))
        << describe(outcomes[static_cast<size_t>(rank)]);
  }
}

}  // namespace
}  // namespace argosy::parity
