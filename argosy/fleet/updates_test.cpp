// A loop over updates has the same bits on any number of processes.
#include "argosy/fleet/updates.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/fingerprint.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/engine/seed.h"
#include "argosy/fleet/fleet_test_support.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/evaluate.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/sgd.h"

#include "tests/support/error_text.h"

namespace argosy::fleet {
namespace {

using ::testing::HasSubstr;

struct NetImpl : torch::nn::Module {
  NetImpl() {
    first = register_module("first", torch::nn::Linear(6, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    last = register_module("last", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return last(torch::dropout(norm(first(x)).relu(), 0.4, is_training()));
  }
  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Net);

/// 156 samples, made without libtorch's generator.
auto samples() {
  const at::Tensor n = at::arange(156 * 6, at::kFloat).reshape({156, 6});
  return data::TensorDataset((n * 0.37).sin(), (at::arange(156) * 7).remainder(3));
}

uint64_t hash_of(const torch::nn::Module& module) {
  Fingerprint all;
  for (const auto& tensors : {module.parameters(), module.buffers()}) {
    for (const at::Tensor& tensor : tensors) {
      const at::Tensor flat = tensor.detach().contiguous();
      all.add(std::string_view(static_cast<const char*>(flat.data_ptr()), flat.nbytes()));
    }
  }
  return all.value();
}

struct Job {
  int64_t virtual_ranks = 6;
  int64_t micros = 1;
  int epochs = 2;
  bool shuffle = true;
  bool overlap_update = false;
  bool evaluates = false;  ///< by the loader of the training, after each epoch
  bool sharding = false;
};

/// Trains in `processes` processes. Returns what each rank has at the end: "<hash> <passes>".
std::vector<std::string> train(const Job& job, int processes) {
  const test::TempDir folder;
  run_job(
      processes,
      [&](const std::string& /*folder*/) {
        torch::set_num_threads(1);
        seed_everything(5);
        auto model = distributed_model(Net());
        seed_everything(5, worker_index());
        auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 1e-2}));
        const auto train = samples();
        data::DataLoader loader(
            train,
            distributed_batch_sampler(
                train.size(),
                {.batch_size = 4, .shuffle = job.shuffle, .seed = 3, .micro_batches = job.micros}),
            {.num_workers = 1});
        int64_t passes = 0;
        for (int epoch = 0; epoch < job.epochs; ++epoch) {
          for (auto& update : updates(loader)) {
            for (auto& [x, y] : update) {
              const at::Tensor loss = torch::nn::functional::cross_entropy(model(x), y);
              (loss / update.micro_batches()).backward();
              ++passes;
            }
            if (!job.overlap_update) {  // noise that is drawn outside of the passes
              model->last->bias.mutable_grad().add_(torch::rand({3}), 1e-2);
            }
            optimizer.step();
            optimizer.zero_grad();
          }
          if (job.evaluates) {
            const auto whole = model.whole_parameters();
            metrics::evaluate(model, loader, metrics::Accuracy());
          }
        }
        const auto whole = model.whole_parameters();
        std::ofstream(folder.path() / std::to_string(worker_index()))
            << hash_of(*model.module()) << ' ' << passes;
      },
      {.overlap_update = job.overlap_update,
       .virtual_ranks = job.virtual_ranks,
       .sharding = job.sharding,
       .sharding_configs = {.unit_bytes = 0}});
  std::vector<std::string> ends;
  for (int rank = 0; rank < processes; ++rank) {
    std::stringstream text;
    text << std::ifstream(folder.path() / std::to_string(rank)).rdbuf();
    ends.push_back(text.str());
  }
  return ends;
}

std::string hash_in(const std::string& end) {
  return end.substr(0, end.find(' '));
}

TEST(Updates, HaveOneHashOnAnyNumberOfProcesses) {
  for (const Job& job : {Job{.virtual_ranks = 6}, Job{.virtual_ranks = 5, .micros = 3}}) {
    const std::string expected = hash_in(train(job, static_cast<int>(job.virtual_ranks)).front());
    for (const int processes : {1, 2, 3, 4, 7, 8}) {
      for (const std::string& end : train(job, processes)) {
        EXPECT_EQ(hash_in(end), expected)
            << job.virtual_ranks << " virtual ranks on " << processes << " processes";
      }
    }
    EXPECT_NE(hash_in(train({.virtual_ranks = 4, .micros = job.micros}, 1).front()), expected);
  }
}

// The evaluation is an epoch of the loader, on a spare too.
TEST(Updates, GoOnAfterAnEvaluationByTheSameLoader) {
  const Job job{.virtual_ranks = 4, .evaluates = true};
  const std::string expected = hash_in(train(job, 4).front());
  EXPECT_NE(hash_in(train({.virtual_ranks = 4}, 4).front()), expected);
  for (const int processes : {1, 3, 5}) {
    for (const std::string& end : train(job, processes)) {
      EXPECT_EQ(hash_in(end), expected) << processes << " processes";
    }
  }
}

TEST(Updates, HaveThatHashWhereParametersAreDivided) {
  for (Job job :
       {Job{.virtual_ranks = 4}, Job{.virtual_ranks = 4, .micros = 3, .evaluates = true}}) {
    const std::string expected = hash_in(train(job, 4).front());
    job.sharding = true;
    for (const int processes : {1, 2, 3, 4, 6}) {
      for (const std::string& end : train(job, processes)) {
        EXPECT_EQ(hash_in(end), expected) << processes << " processes";
      }
    }
  }
}

TEST(Updates, MayOverlapTheStep) {
  const Job job{.virtual_ranks = 4, .overlap_update = true};
  const std::string expected = hash_in(train(job, 1).front());
  for (const int processes : {2, 4, 6}) {
    for (const std::string& end : train(job, processes)) {
      EXPECT_EQ(hash_in(end), expected) << processes << " processes";
    }
  }
}

TEST(Updates, ShareThePasses) {
  // 26 samples of each virtual rank are 7 batches, in two epochs 14.
  const std::vector<std::string> ends = train({.virtual_ranks = 6}, 4);
  std::vector<std::string> passes;
  for (const std::string& end : ends) {
    passes.push_back(end.substr(end.find(' ') + 1));
  }
  EXPECT_THAT(passes, ::testing::ElementsAre("28", "28", "14", "14"));
  const std::vector<std::string> with_a_spare = train({.virtual_ranks = 1}, 2);
  EXPECT_THAT(with_a_spare.front(), ::testing::EndsWith(" 78"));
  EXPECT_THAT(with_a_spare.back(), ::testing::EndsWith(" 0"));
}

/// The gradients after each of two updates, in which `body` makes the passes.
template <typename Body>
std::vector<at::Tensor> gradients_of(const Body& body) {
  auto model = distributed_model(torch::nn::Linear(6, 2));
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : model.parameters()) {
      parameter.fill_(0.1);
    }
  }
  optim::SGD optimizer(model, {.lr = 0});
  const auto train = samples();
  data::DataLoader loader(train, distributed_batch_sampler(train.size(), {.batch_size = 4}));
  std::vector<at::Tensor> gradients;
  for (auto& update : updates(loader)) {
    for (auto& [x, y] : update) {
      body(model, optimizer, x);
    }
    gradients.push_back(model->weight.grad().clone());
    optimizer.zero_grad();
    if (gradients.size() == 2) {
      break;
    }
  }
  return gradients;
}

// Whatever else a loop does beside its one backward pass, no gradient of before comes back.
TEST(Updates, HaveNothingOfTheOneBefore) {
  for (const int64_t virtual_ranks : {2, 4}) {
    run_job(2,
            [](const std::string& /*folder*/) {
              const auto expected = gradients_of(
                  [](auto& model, auto&, const at::Tensor& x) { model(x).sum().backward(); });
              const auto cleared =
                  gradients_of([](auto& model, auto& optimizer, const at::Tensor& x) {
                    optimizer.zero_grad();
                    model(x).sum().backward();
                  });
              const auto looked = gradients_of([](auto& model, auto&, const at::Tensor& x) {
                model(x).sum().backward();
                const at::Tensor input = x.clone().requires_grad_();
                (void)torch::autograd::grad({model(input).sum()}, {input});
              });
              for (size_t i = 0; i < 2; ++i) {
                EXPECT_TRUE(cleared.at(i).equal(expected.at(i)));
                EXPECT_TRUE(looked.at(i).equal(expected.at(i)));
              }
            },
            {.virtual_ranks = virtual_ranks});
  }
}

TEST(Updates, LeaveTheLoaderWhereACheckpointGoesOn) {
  for (const int64_t virtual_ranks : {2, 6}) {
    run_job(2,
            [](const std::string& /*folder*/) {
              const auto train = samples();
              data::DataLoader loader(
                  train,
                  distributed_batch_sampler(train.size(), {.batch_size = 4, .micro_batches = 2}));
              int64_t done = 0;
              for (auto& update : updates(loader)) {
                for ([[maybe_unused]] auto& batch : update) {
                }
                done += update.micro_batches();
                const data::LoaderState state = loader.state();
                EXPECT_EQ(state.epoch * state.batches + state.position, done);
              }
            },
            {.virtual_ranks = virtual_ranks});
  }
}

TEST(Updates, ThatWereLeftAreForgotten) {
  run_job(
      2,
      [](const std::string& /*folder*/) {
        const auto train = samples();
        data::DataLoader loader(
            train, distributed_batch_sampler(train.size(), {.batch_size = 4, .micro_batches = 3}));
        auto model = distributed_model(torch::nn::Linear(6, 2));
        try {
          for (auto& update : updates(loader)) {
            for ([[maybe_unused]] auto& batch : update) {
              throw std::runtime_error("a sample");
            }
          }
        } catch (const std::runtime_error&) {
        }
        model(at::full({1, 6}, static_cast<double>(worker_index()))).sum().backward();
        EXPECT_TRUE(model->weight.grad().equal(at::full({2, 6}, 0.5))) << "the average of 0 and 1";
      },
      {.virtual_ranks = 2});
}

TEST(Updates, ReduceFiguresOfVirtualRanksAlike) {
  for (const int processes : {1, 2, 6, 8}) {
    run_job(processes,
            [](const std::string& /*folder*/) {
              const int64_t mine = worker_index() < 6 ? std::max(1, 6 / worker_num()) : 0;
              const auto average = [&](at::ScalarType type, double scale) {
                std::vector<at::Tensor> leaves;
                for (int64_t i = 0; i < mine; ++i) {
                  leaves.push_back(
                      at::full({1}, (static_cast<double>(mine * worker_index() + i) + 1) * scale)
                          .to(type));
                }
                return all_reduce(leaves, {.op = comm::ReduceOp::kAvg}).item<double>();
              };
              EXPECT_EQ(average(at::kByte, 40), 140);      // their sum does not fit
              EXPECT_EQ(average(at::kHalf, 8192), 28672);  // likewise
              EXPECT_EQ(average(at::kBFloat16, 1.0), 3.5);
            },
            {.virtual_ranks = 6});
  }
}

TEST(Updates, HaveTheSameNumberOnAnyNumberOfProcesses) {
  for (const int processes : {1, 2, 4, 6}) {
    run_job(processes,
            [](const std::string& /*folder*/) {
              const auto set = samples();  // 39 of each virtual rank are 10 batches, 4 updates
              data::DataLoader loader(
                  set, distributed_batch_sampler(156, {.batch_size = 4, .micro_batches = 3}));
              EXPECT_EQ(updates(loader).size(), 4) << worker_num();
            },
            {.virtual_ranks = 4});
  }
}

TEST(UpdatesErrors, ACheckpointInsideOfThePassesIsNamed) {
  run_job(1,
          [](const std::string& /*folder*/) {
            const auto set = samples();
            data::DataLoader loader(set, distributed_batch_sampler(156, {.batch_size = 4}));
            int64_t saved = 0;
            for (auto& update : updates(loader)) {
              for ([[maybe_unused]] auto& batch : update) {
                EXPECT_THAT(
                    test::error_text<UsageError>([&] { (void)loader.state(); }),
                    HasSubstr("state() inside of the passes of an update, which is not done"));
              }
              EXPECT_EQ(loader.state().position, ++saved % updates(loader).size());
            }
            EXPECT_THAT(test::error_text<UsageError>([&] {
                          for (auto& update : updates(loader)) {
                            for ([[maybe_unused]] auto& batch : update) {
                              break;
                            }
                          }
                        }),
                        HasSubstr("the loop over an update was left"));
            EXPECT_NO_THROW((void)loader.state());
          },
          {.virtual_ranks = 3});
}

/// Whatever the number of processes: with one virtual rank for each it would do no harm.
TEST(UpdatesErrors, AStepAndASaveInsideOfThePassesAreNamed) {
  for (const auto& [processes, ranks] : {std::pair{1, 0}, {1, 1}, {1, 2}, {2, 2}, {2, 0}}) {
    run_job(processes,
            [](const std::string& folder) {
              const auto set = samples();
              auto model = distributed_model(Net());
              auto optimizer = distributed_optimizer(optim::Adam(model, {.lr = 0.01}));
              data::DataLoader loader(set, distributed_batch_sampler(156, {.batch_size = 4}));
              const auto error_of = [&](auto inside) {
                return test::error_text<UsageError>([&] {
                  for (auto& update : updates(loader)) {
                    for (auto& [x, y] : update) {
                      model(x).sum().backward();
                      inside();
                    }
                  }
                });
              };
              EXPECT_THAT(error_of([&] { optimizer.step(); }),
                          HasSubstr("Call optimizer.step() after the loop over them"));
              EXPECT_THAT(error_of([&] { save(model, folder + "/model.pt"); }),
                          HasSubstr("[fleet.save] called inside of the passes of an update"));
              save(model, folder + "/model.pt");
            },
            {.virtual_ranks = ranks});
  }
}

/// The models after the one that names the error are outside of the passes too.
TEST(UpdatesErrors, LeaveNoModelInsideOfThePasses) {
  run_job(1,
          [](const std::string& folder) {
            const auto set = samples();
            auto first = distributed_model(Net());
            auto second = distributed_model(Net());
            auto optimizer = distributed_optimizer(optim::SGD(first, {.lr = 0.01}));
            data::DataLoader loader(set, distributed_batch_sampler(156, {.batch_size = 4}));
            EXPECT_THAT(test::error_text<UsageError>([&] {
                          for (auto& update : updates(loader)) {
                            int passes = 0;
                            for (auto& [x, y] : update) {
                              (first(x).sum() + second(x).sum()).backward();
                              if (++passes == virtual_ranks()) {
                                optimizer.step();
                              }
                            }
                          }
                        }),
                        HasSubstr("the parameters have changed amid the micro-batches"));
            save(second, folder + "/model.pt");
          },
          {.virtual_ranks = 2});
}

TEST(UpdatesErrors, NameRanksWithOtherNumbers) {
  run_job(2, [](const std::string& /*folder*/) {
    EXPECT_THAT(test::error_text<ConfigError>([] { detail::deal_to(4 + 2 * worker_index()); }),
                HasSubstr("rank 1 has virtual_ranks 6, rank 0 has 4. Give all ranks the same"));
  });
}

TEST(UpdatesErrors, NameWhatWasLeftOut) {
  run_job(
      1,
      [](const std::string& /*folder*/) {
        const auto train = samples();
        data::DataLoader own(train, {.batch_size = 4});
        EXPECT_THAT(test::error_text<UsageError>([&] { (void)updates(own).begin(); }),
                    HasSubstr("the job has 3 virtual ranks, and the loader's batches are dealt to "
                              "processes. Give the loader fleet::distributed_batch_sampler"));
        data::DataLoader loader(train, distributed_batch_sampler(156, {.batch_size = 4}));
        auto model = distributed_model(Net());
        EXPECT_THAT(test::error_text<UsageError>([&] {
                      for (auto& [x, y] : loader) {
                        model(x).sum().backward();
                      }
                    }),
                    HasSubstr("this forward belongs to none of them. Loop over fleet::updates"));
        EXPECT_THAT(test::error_text<UsageError>([&] {
                      for (auto& update : updates(loader)) {
                        for (auto& [x, y] : update) {
                          model(x).sum().backward();
                          break;
                        }
                      }
                    }),
                    HasSubstr("the loop over an update was left after 1 of its 3 batches"));
        const auto alike = data::DistributedBatchSampler(
            156, {.batch_size = 4, .num_replicas = 3, .rank = 1, .virtual_ranks = 3});
        data::DataLoader others(train, alike);
        EXPECT_THAT(test::error_text<UsageError>([&] { (void)updates(others).begin(); }),
                    HasSubstr("the loader's batches are those of virtual ranks 1 to 1, and rank 0 "
                              "has 0 to 2"));
        parallel::DistributedDataParallel own_wrapper(torch::nn::Linear(6, 2), group());
        EXPECT_THAT(test::error_text<UsageError>([&] {
                      for (auto& update : updates(loader)) {
                        for (auto& [x, y] : update) {
                          own_wrapper(x).sum().backward();
                        }
                      }
                    }),
                    HasSubstr("a wrapper averages over 1 virtual ranks, and the job has 3"));
      },
      {.virtual_ranks = 3});
}

TEST(UpdatesErrors, StrategiesThatNeedAProcessForEach) {
  const auto refusal = [](const DistributedStrategy& strategy) {
    return test::error_text<ConfigError>([&] { init(strategy, {.rank = 0, .world_size = 1}); });
  };
  EXPECT_THAT(refusal({.virtual_ranks = 4, .sync_batch_norm = true}),
              HasSubstr("sync_batch_norm needs as many processes as virtual ranks (4)"));
  EXPECT_THAT(refusal({.virtual_ranks = 4, .gradient_merge = true}),
              HasSubstr("virtual_ranks and gradient_merge exclude each other"));
  EXPECT_THAT(refusal({.virtual_ranks = -1}), HasSubstr("expected 0 to 32768, got -1"));
  EXPECT_THAT(refusal({.virtual_ranks = (int64_t{1} << 32) + 2}),
              HasSubstr("virtual_ranks: expected 0 to 32768, got 4294967298"));
}

}  // namespace
}  // namespace argosy::fleet
