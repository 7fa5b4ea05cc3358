/// Training on devices by ranks that are processes, over each transport between them.
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/env.h"
#include "argosy/base/even_part.h"
#include "argosy/optim/adam.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/rendezvous/file_store.h"

#include "tests/support/on_devices.h"
#include "tests/support/temp_dir.h"

namespace argosy::parallel {
namespace {

using testing::values;
using Results = std::vector<at::Tensor>;

/// Norms over ranks, averaged gradients, an optimizer; uneven batches. Before a norm a bias has no
/// gradient but rounding errors, which Adam would make as large as any other.
Results train(const comm::Group& group, at::Device device) {
  torch::nn::Linear in(torch::nn::LinearOptions(3, 6).bias(false)), out(6, 2);
  SyncBatchNorm1d norm(6);
  torch::nn::Sequential net(in, norm, torch::nn::Tanh(), out);
  testing::fill(*net, 1 + group.rank());  // rank 0's are everybody's
  net->to(device);
  convert_sync_batchnorm(net, group);
  DistributedDataParallel model(net, group, {.first_bucket_bytes = 8, .bucket_cap_bytes = 64});
  optim::Adam optimizer(model, {.lr = 0.1});
  EXPECT_EQ(model.divide_step(optimizer, {.scatter_gradients = true}), group.size() > 1);
  Results results;
  for (int step = 0; step < 3; ++step) {
    const at::Tensor x = values({3 + group.rank(), 3}, step * 7 + group.rank(), at::kFloat);
    const at::Tensor y = model(x.to(device));
    y.pow(2).mean().backward();
    optimizer.step();
    optimizer.zero_grad();
    results.push_back(y.detach());
  }
  for (const auto& list : {net->parameters(), net->buffers()}) {
    for (const at::Tensor& each : list) {
      EXPECT_EQ(each.device(), device);
      results.push_back(each.detach());
    }
  }
  return results;
}

/// A training of six virtual ranks; weights and statistics after it.
Results train_virtually(const comm::Group& group, at::Device device) {
  constexpr int64_t kVirtualRanks = 6;
  torch::nn::Linear in(3, 6), out(6, 2);
  torch::nn::Sequential net(in, torch::nn::BatchNorm1d(6), torch::nn::Tanh(), out);
  testing::fill(*net, 1);
  net->to(device);
  DistributedDataParallel model(net, group, {.virtual_ranks = kVirtualRanks});
  optim::Adam optimizer(model, {.lr = 0.1});
  EXPECT_EQ(model.divide_step(optimizer, {.scatter_gradients = true}), group.size() > 1);
  const IndexRange own = even_part(kVirtualRanks, group.size(), group.rank());
  for (int step = 0; step < 3; ++step) {
    for (int64_t leaf = 0; leaf < own.size(); ++leaf) {
      model.begin({.leaf = leaf, .leaves = own.size()});
      const auto number = static_cast<double>(own.begin + leaf);
      model(values({5, 3}, step * 7 + number, at::kFloat).to(device)).pow(2).mean().backward();
    }
    model.end_update();
    optimizer.step();
    optimizer.zero_grad();
  }
  Results results;
  for (const auto& list : {net->parameters(), net->buffers()}) {
    for (const at::Tensor& each : list) {
      results.push_back(each.detach().cpu());
    }
  }
  return results;
}

class ParallelInProcesses : public test::OnDevicesInProcesses {
 protected:
  enum class Devices { kOfEach, kOne, kOverNccl };

  [[nodiscard]] at::Device device_of(int rank, int ranks, Devices devices) const {
    return devices == Devices::kOverNccl ? device_over_nccl(rank, ranks)
                                         : device(devices == Devices::kOne ? 0 : rank);
  }
  [[nodiscard]] static bool is_exact() { return env::get("ARGOSY_NCCL_MODE") == "exact"; }
  /// Of a training with virtual ranks, on any number of processes.
  void expect_one_result(const std::string& backend, Devices devices) const;
  void expect_as_on_cpu(const std::string& backend, Devices devices, int ranks = 2) const {
    const test::TempDir folder;
    test::run_ranks(ranks,
                    [&](int rank) {
                      torch::set_num_threads(1);
                      const at::Device own = device_of(rank, ranks, devices);
                      const comm::Group group = comm::connect(
                          {.backend = backend,
                           .store = rendezvous::file_store((folder.path() / "store").string()),
                           .rank = rank,
                           .size = ranks,
                           .timeout = std::chrono::seconds(20)});
                      const Results wanted = train(group, at::kCPU);
                      const Results got = train(group, own);
                      ASSERT_EQ(got.size(), wanted.size());
                      for (size_t i = 0; i < got.size(); ++i) {
                        const std::string what = backend + ", result " + std::to_string(i);
                        if (devices == Devices::kOverNccl && ranks > 2 && !is_exact()) {
                          EXPECT_TRUE(got[i].cpu().allclose(wanted[i], 1e-4, 1e-5)) << what;
                        } else {
                          expect_equal(got[i], wanted[i], what);
                        }
                      }
                    },
                    {.mode = test::RankMode::kProcesses});
  }
};

TEST_P(ParallelInProcesses, OverGloo) {
  expect_as_on_cpu("gloo", Devices::kOfEach);
}
TEST_P(ParallelInProcesses, OverSharedMemory) {
  expect_as_on_cpu("shm", Devices::kOfEach);
}
TEST_P(ParallelInProcesses, OnOneDevice) {
  expect_as_on_cpu("shm", Devices::kOne);
}

/// Of two ranks' numbers there is one sum; of more, the order of NCCL's own.
TEST_P(ParallelInProcesses, OverNccl) {
  for (const int ranks : {2, 3}) {
    expect_as_on_cpu("cpu:shm,cuda:nccl", Devices::kOverNccl, ranks);
  }
}
TEST_P(ParallelInProcesses, OverNcclInTheExactMode) {
  ::setenv("ARGOSY_NCCL_MODE", "exact", 1);
  for (const int ranks : {2, 3}) {
    expect_as_on_cpu("cpu:shm,cuda:nccl", Devices::kOverNccl, ranks);
  }
  ::unsetenv("ARGOSY_NCCL_MODE");
}

/// The same bits from any number of processes that share a device.
TEST_P(ParallelInProcesses, VirtualRanks) {
  expect_one_result("shm", Devices::kOne);
}

/// Virtual ranks are exact by themselves.
TEST_P(ParallelInProcesses, VirtualRanksOverNccl) {
  expect_one_result("cpu:shm,cuda:nccl", Devices::kOverNccl);
}

void ParallelInProcesses::expect_one_result(const std::string& backend, Devices devices) const {
  const test::TempDir folder;
  const std::string first = (folder.path() / "first").string();
  for (const int ranks : {1, 2, 3, 6}) {
    test::run_ranks(ranks,
                    [&](int rank) {
                      torch::set_num_threads(1);
                      const at::Device own = device_of(rank, ranks, devices);
                      const std::string store = "store" + std::to_string(ranks);
                      const comm::Group group = comm::connect(
                          {.backend = backend,
                           .store = rendezvous::file_store((folder.path() / store).string()),
                           .rank = rank,
                           .size = ranks,
                           .timeout = std::chrono::seconds(30)});
                      const Results got = train_virtually(group, own);
                      if (ranks == 1) {
                        torch::save(got, first);
                        return;
                      }
                      Results wanted;
                      torch::load(wanted, first);
                      ASSERT_EQ(got.size(), wanted.size());
                      for (size_t i = 0; i < got.size(); ++i) {
                        EXPECT_TRUE(got[i].equal(wanted[i]))
                            << "result " << i << " of rank " << rank << " of " << ranks;
                      }
                    },
                    {.mode = test::RankMode::kProcesses});
  }
}

ARGOSY_ON_DEVICES(ParallelInProcesses);

}  // namespace
}  // namespace argosy::parallel
