#pragma once

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/optim/adam.h"
#include "argosy/optim/sgd.h"
#include "argosy/ps/embedding.h"
#include "argosy/ps/first_row.h"
#include "argosy/ps/training.h"
#include "argosy/rendezvous/store.h"

#include "tests/support/temp_dir.h"

// A small network whose rows lie on servers, the same in one process, and jobs of threads.
namespace argosy::ps::trained {

using namespace std::chrono_literals;

constexpr int64_t kDim = 4;
constexpr int64_t kWords = 50;
constexpr float kRange = 0.3F;

struct ServedNet : torch::nn::Module {
  explicit ServedNet(std::optional<int64_t> padding = {}, Entry entry = {}) {
    words = register_module("words",
                            Embedding(EmbeddingOptions{.dim = kDim,
                                                       .initial_range = kRange,
                                                       .seed = 5,
                                                       .entry = entry,
                                                       .padding_idx = padding}));
    head = register_module("head", torch::nn::Linear(kDim, 3));
  }
  at::Tensor forward(const at::Tensor& ids) { return head(words(ids).sum(1)); }
  Embedding words{nullptr};
  torch::nn::Linear head{nullptr};
};

/// The same network with all rows in this process.
struct LocalNet : torch::nn::Module {
  LocalNet() {
    words = register_module("words", torch::nn::Embedding(kWords, kDim));
    head = register_module("head", torch::nn::Linear(kDim, 3));
    const torch::NoGradGuard no_grad;
    for (int64_t id = 0; id < kWords; ++id) {
      std::vector<float> row(kDim);
      draw_first_row(5, static_cast<uint64_t>(id), kRange, row);
      words->weight[id].copy_(torch::tensor(row));
    }
  }
  at::Tensor forward(const at::Tensor& ids) { return head(words(ids).sum(1)); }
  torch::nn::Embedding words{nullptr};
  torch::nn::Linear head{nullptr};
};

/// A batch is a function of worker and step.
inline std::pair<at::Tensor, at::Tensor> batch_of(int worker, int64_t step) {
  auto random = at::detail::createCPUGenerator(uint64_t{100} * static_cast<uint64_t>(worker) +
                                               static_cast<uint64_t>(step));
  return {torch::randint(kWords, {8, 5}, random, at::kLong),
          torch::randint(3, {8}, random, at::kLong)};
}

template <typename Net>
at::Tensor loss_of(Net& net, int worker, int64_t step) {
  const auto [ids, targets] = batch_of(worker, step);
  return torch::nn::functional::cross_entropy(net.forward(ids), targets);
}

using MakeOptimizer = std::function<optim::Optimizer(torch::nn::Module&)>;

inline optim::Optimizer by_sgd(torch::nn::Module& net) {
  return optim::SGD(net, {.lr = 0.1});
}
inline optim::Optimizer by_adam(torch::nn::Module& net) {
  return optim::Adam(net, {.lr = 0.01, .weight_decay = 0.01});
}

/// All weights of a network, one after the other.
inline at::Tensor weights_of(ServedNet& net) {
  const torch::NoGradGuard no_grad;
  return torch::cat({net.words(torch::arange(kWords)).reshape(-1),
                     net.head->weight.reshape(-1),
                     net.head->bias.reshape(-1)})
      .clone();
}
inline at::Tensor weights_of(LocalNet& net) {
  return torch::cat({net.words->weight.detach().reshape(-1),
                     net.head->weight.detach().reshape(-1),
                     net.head->bias.detach().reshape(-1)});
}

/// A LocalNet that begins as the first worker of a job does.
inline LocalNet first_net() {
  torch::manual_seed(1);
  const ServedNet same;  // draws its head from the same numbers
  LocalNet net;
  const torch::NoGradGuard no_grad;
  net.head->weight.copy_(same.head->weight);
  net.head->bias.copy_(same.head->bias);
  return net;
}

struct Job {
  int servers = 1;
  int workers = 1;
  MakeOptimizer optimizer = by_sgd;
  Entry entry{};
  TrainingOptions options{};                   ///< roles and agent are set
  std::shared_ptr<rendezvous::Store> store{};  ///< nullptr: one of its own for each run
};

/// Servers and workers of one job as threads: runs `work` as each worker.
inline void run_job(const Job& job,
                    const std::function<void(ServedTraining&, ServedNet&, int worker)>& work) {
  const std::shared_ptr<rendezvous::Store> store =
      job.store != nullptr ? job.store : rendezvous::in_process_store();
  std::vector<std::thread> threads;
  std::mutex making;
  for (int rank = 0; rank < job.servers + job.workers; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_lock lock(making);
      torch::manual_seed(static_cast<uint64_t>(rank == job.servers ? 1 : 1000 + rank));
      ServedNet net({}, job.entry);  // only the first worker's parameters count
      lock.unlock();
      optim::Optimizer optimizer = job.optimizer(net);
      const bool is_server = rank < job.servers;
      TrainingOptions options = job.options;
      options.roles = {.servers = job.servers,
                       .workers = job.workers,
                       .is_server = is_server,
                       .index = is_server ? rank : rank - job.servers};
      options.timeout = 60s;
      options.agent = {.store = store, .token = "secret"};
      ServedTraining training(net, optimizer, options);
      if (is_server) {
        training.serve();
        return;
      }
      work(training, net, rank - job.servers);
      training.stop();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

/// The gradients of a batch are then where step() finds them.
inline float backward(ServedTraining& training, ServedNet& net, int worker, int64_t step) {
  training.optimizer().zero_grad();
  const at::Tensor loss = loss_of(net, worker, step);
  loss.backward();
  return loss.item<float>();
}

/// Ten steps of these workers on two servers, recorded once and replayed five times.
inline void expect_repeated_to_the_bit(const TrainingOptions& given, int workers) {
  const test::TempDir directory;
  const auto run = [&](const std::string& record, const std::string& replay) {
    TrainingOptions options = given;
    options.record = record;
    options.replay = replay;
    at::Tensor result;
    std::barrier<> all(workers);
    run_job({.servers = 2, .workers = workers, .options = options},
            [&](ServedTraining& training, ServedNet& net, int worker) {
              for (int step = 0; step < 10; ++step) {
                (void)backward(training, net, worker, step);
                training.step();
              }
              all.arrive_and_wait();
              if (worker == 0) {
                training.pull();
                result = weights_of(net);
              }
            });
    return result;
  };
  const std::string folder = directory.path().string();
  const at::Tensor recorded = run(folder, "");
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(torch::equal(run("", folder), recorded)) << "replay " << i;
  }
}

}  // namespace argosy::ps::trained
