#include "argosy/ps/training.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/manifest.h"
#include "argosy/optim/lamb.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/ps/training_test_support.h"
#include "argosy/rendezvous/missed_ranks.h"
#include "argosy/rendezvous/store.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::ps {
namespace {

using test::error_text;
using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace trained;

constexpr int kSteps = 6;

struct Trained {
  std::vector<float> losses{};  ///< of worker 0
  at::Tensor weight{}, rows{};
};

/// Trains with servers and workers as threads.
Trained served(int servers,
               int workers,
               const MakeOptimizer& make,
               UpdateMode mode = UpdateMode::kSync,
               const std::string& checkpoints = "",
               int until = kSteps) {
  Trained result;
  run_job({.servers = servers,
           .workers = workers,
           .optimizer = make,
           .options = {.mode = mode, .checkpoints = checkpoints}},
          [&](ServedTraining& training, ServedNet& net, int worker) {
            optim::Optimizer on_servers = training.optimizer();
            while (training.steps() < until) {
              on_servers.zero_grad();
              const at::Tensor loss = loss_of(net, worker, training.steps());
              loss.backward();
              on_servers.step();
              if (worker == 0) {
                result.losses.push_back(loss.item<float>());
              }
              if (!checkpoints.empty() && training.steps() % 2 == 0) {
                training.save();
              }
            }
            if (worker == 0) {
              const torch::NoGradGuard no_grad;
              result.weight = net.head->weight.detach().clone();
              result.rows = net.words(torch::arange(kWords)).clone();
              EXPECT_GT(training.stats()[0].rows, 0U);
              EXPECT_LE(training.stats()[0].rows, static_cast<uint64_t>(kWords));
            }
          });
  return result;
}

/// Trains in this process by the average of the workers' gradients.
Trained local(int workers, const MakeOptimizer& make) {
  LocalNet net = first_net();
  optim::Optimizer optimizer = make(net);
  Trained result;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<at::Tensor>> gradients;
    for (int worker = 0; worker < workers; ++worker) {
      optimizer.zero_grad();
      const at::Tensor loss = loss_of(net, worker, step);
      loss.backward();
      if (worker == 0) {
        result.losses.push_back(loss.item<float>());
      }
      auto& mine = gradients.emplace_back();
      for (const auto& parameter : net.parameters()) {
        mine.push_back(parameter.grad().clone());
      }
    }
    const auto parameters = net.parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor sum = gradients[0][i];
      for (int worker = 1; worker < workers; ++worker) {
        sum = sum + gradients[static_cast<size_t>(worker)][i];  // up to 3 workers: the tree's order
      }
      parameters[i].mutable_grad() = sum / workers;
    }
    optimizer.step();
  }
  result.weight = net.head->weight.detach();
  result.rows = net.words->weight.detach();
  return result;
}

TEST(PsTraining, OneWorkerLearnsToTheBitWhatAProcessAloneDoes) {
  const Trained alone = local(1, by_sgd);
  const Trained by_servers = served(2, 1, by_sgd);
  EXPECT_EQ(by_servers.losses, alone.losses);
  EXPECT_TRUE(torch::equal(by_servers.weight, alone.weight));
  EXPECT_TRUE(torch::equal(by_servers.rows, alone.rows));
}

TEST(PsTraining, SyncIsTheAverageOfTheWorkersToTheBit) {
  for (const int workers : {2, 3}) {
    const Trained together = local(workers, by_sgd);
    for (const int servers : {1, 3}) {
      const Trained by_servers = served(servers, workers, by_sgd);
      EXPECT_EQ(by_servers.losses, together.losses) << servers << " servers, " << workers;
      EXPECT_TRUE(torch::equal(by_servers.weight, together.weight));
      EXPECT_TRUE(torch::equal(by_servers.rows, together.rows));
    }
  }
}

TEST(PsTraining, AnyOfOurOptimizersRunsOnServers) {
  const auto lamb = [](torch::nn::Module& net) -> optim::Optimizer {
    return optim::Lamb(net, {.lr = 0.01});
  };
  for (const MakeOptimizer& make : {MakeOptimizer(by_adam), MakeOptimizer(lamb)}) {
    const Trained one = served(1, 2, make);
    const Trained three = served(3, 2, make);
    EXPECT_EQ(one.losses, three.losses);
    EXPECT_TRUE(torch::equal(one.weight, three.weight));
    EXPECT_TRUE(torch::equal(one.rows, three.rows));
    // Dense parameters as by collectives; rows differ, because each counts its own steps.
    EXPECT_FLOAT_EQ(one.losses[0], local(2, make).losses[0]);
  }
}

TEST(PsTraining, GoesOnFromItsCheckpointToTheSameBits) {
  const test::TempDir directory;
  const std::string folder = directory.path().string();
  const Trained whole = served(2, 2, by_adam);
  const Trained begun =
      served(2, 2, by_adam, UpdateMode::kSync, folder, 5);  // its last save is of 4
  EXPECT_EQ(begun.losses.size(), 5U);
  const Trained rest = served(3, 2, by_adam, UpdateMode::kSync, folder);
  EXPECT_EQ(rest.losses, (std::vector<float>{whole.losses[4], whole.losses[5]}));
  EXPECT_TRUE(torch::equal(rest.weight, whole.weight));
  EXPECT_TRUE(torch::equal(rest.rows, whole.rows));
  // What it holds can be read without servers.
  const checkpoint::Checkpoint saved(folder + "/" + checkpoint::step_name(kSteps));
  EXPECT_TRUE(torch::equal(saved.part("model").at("head.weight"), whole.weight));
}

TEST(PsTraining, ACheckpointKeepsTheFirstWorkersPlaceForAll) {
  const test::TempDir directory;
  Job job{.servers = 1, .workers = 2};
  job.options.checkpoints = directory.path().string();
  run_job(job, [](ServedTraining& training, ServedNet& net, int worker) {
    EXPECT_EQ(training.place(), "");
    EXPECT_EQ(training.begun(), 0);
    backward(training, net, worker, 0);
    training.step();
    training.set_place(worker == 0 ? "line 7" : "another");
    training.save();
  });
  run_job(job, [](ServedTraining& training, ServedNet& /*net*/, int /*worker*/) {
    EXPECT_EQ(training.begun(), 1);
    EXPECT_EQ(training.place(), "line 7");
  });
}

TEST(PsTraining, SchedulesActOnItsOptimizer) {
  const std::shared_ptr<rendezvous::Store> store = rendezvous::in_process_store();
  const TrainingOptions options{.agent = {.store = store, .token = "s"}};
  std::thread server([&] {
    torch::nn::Linear net(2, 1);
    TrainingOptions mine = options;
    mine.roles.is_server = true;
    ServedTraining training(*net, by_sgd(*net), mine);
    for (const std::function<void()>& work : {std::function([&] { training.step(); }),
                                              std::function([&] { training.pull(); }),
                                              std::function([&] { training.shrink(); }),
                                              std::function([&] { training.set_day(1); }),
                                              std::function([&] { (void)training.stats(); }),
                                              std::function([&] { training.save("here"); })}) {
      EXPECT_THAT(error_text<UsageError>(work), HasSubstr("is for workers, and this process is"));
    }
    training.serve();
  });
  torch::nn::Linear net(2, 1);
  const optim::Optimizer given = by_sgd(*net);
  ServedTraining training(*net, given, options);
  optim::Optimizer optimizer = training.optimizer();
  optim::PiecewiseDecay schedule(optimizer, {.boundaries = {1}, .values = {0.5, 0.05}});
  for (const double lr : {0.5, 0.05}) {
    const at::Tensor before = net->weight.detach().clone();
    optimizer.zero_grad();
    net->weight.sum().backward();
    optimizer.step();
    EXPECT_TRUE(torch::allclose(net->weight.detach(), before - lr)) << lr;
    EXPECT_EQ(given.lr(), lr);
    schedule.step();
  }
  EXPECT_EQ(optimizer.state_dict().optimizer, "SGD");
  EXPECT_TRUE(optimizer.state_dict().parameters.empty());
  EXPECT_THROW(optimizer.add_param_group(*net), UsageError);
  training.stop();
  server.join();
}

TEST(PsTraining, DenseParametersHaveTheBitsOfTheOptimizer) {
  // Without embeddings everything is dense, so also Adam's bits are the same.
  const auto run = [](bool by_servers) {
    const std::shared_ptr<rendezvous::Store> store = rendezvous::in_process_store();
    at::Tensor weight;
    torch::manual_seed(3);
    torch::nn::Linear net(6, 2);
    std::thread server([&] {
      if (by_servers) {
        torch::nn::Linear net(6, 2);  // draws after the worker's, whose parameters count
        optim::Optimizer optimizer = by_adam(*net);
        ServedTraining training(
            *net,
            optimizer,
            {.roles = {.is_server = true}, .agent = {.store = store, .token = "s"}});
        training.serve();
      }
    });
    optim::Optimizer optimizer = by_adam(*net);
    std::unique_ptr<ServedTraining> training;
    if (by_servers) {
      training = std::make_unique<ServedTraining>(
          *net, optimizer, TrainingOptions{.agent = {.store = store, .token = "s"}});
    }
    const at::Tensor input = torch::arange(24).reshape({4, 6}).to(at::kFloat) / 24;
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      net(input).pow(2).sum().backward();
      optimizer.set_lr(0.01 / (step + 1));
      by_servers ? training->step() : optimizer.step();
    }
    if (by_servers) {
      training->stop();
    }
    server.join();
    return net->weight.detach().clone();
  };
  const at::Tensor here = run(false);
  EXPECT_TRUE(torch::equal(run(true), here));
}

TEST(PsTraining, APaddedIdIsZerosAndGetsNoRow) {
  const std::shared_ptr<rendezvous::Store> store = rendezvous::in_process_store();
  const auto options = [&](bool is_server) {
    return TrainingOptions{.roles = {.is_server = is_server},
                           .agent = {.store = store, .token = "secret"}};
  };
  std::thread server([&] {
    ServedNet net(7);
    ServedTraining(net, by_sgd(net), options(true)).serve();
  });
  ServedNet net(7);
  optim::Optimizer optimizer = by_sgd(net);
  ServedTraining training(net, optimizer, options(false));
  const at::Tensor ids = torch::tensor({{1, 7, -3}, {7, 7, 1}});
  const at::Tensor rows = net.words(ids);
  EXPECT_TRUE(torch::equal(rows[0][1], torch::zeros(kDim)));
  EXPECT_FALSE(torch::equal(rows[0][2], torch::zeros(kDim)));
  EXPECT_TRUE(torch::equal(rows[0][0], rows[1][2]));
  (rows.sum() + net.head(torch::ones({1, kDim})).sum()).backward();
  training.step();
  EXPECT_EQ(training.stats()[0].rows, 2U);
  const torch::NoGradGuard no_grad;
  const at::Tensor after = net.words(ids);
  EXPECT_TRUE(torch::equal(after[0][1], torch::zeros(kDim)));
  EXPECT_TRUE(torch::allclose(after[0][0], rows[0][0] - 0.2));  // two gradients of 1
  EXPECT_TRUE(
      torch::equal(net.words(torch::full({1, 2}, 7, at::kLong)), torch::zeros({1, 2, kDim})));
  training.stop();
  server.join();
}

/// Reads ids 1 and 2, and again after a step that takes one from both, asked for before that step.
void read_ahead(UpdateMode mode, bool changes_ids, double expected) {
  const std::shared_ptr<rendezvous::Store> store = rendezvous::in_process_store();
  const auto join = [&](bool is_server) {
    Embedding rows(EmbeddingOptions{.dim = 2, .rule = naive(), .lr = 1});
    optim::Optimizer optimizer = optim::SGD(torch::nn::Linear(1, 1), {.lr = 0});
    ServedTraining training(*rows,
                            optimizer,
                            {.roles = {.is_server = is_server},
                             .mode = mode,
                             .timeout = 60s,
                             .agent = {.store = store, .token = "secret"}});
    if (is_server) {
      return training.serve();
    }
    const at::Tensor ids = torch::tensor({1, 2}, at::kLong);
    const at::Tensor before = rows(ids);
    at::Tensor next = ids.clone();
    rows->prefetch(next);
    next.fill_(7);                       // it is the caller's again
    std::this_thread::sleep_for(200ms);  // else the step may come before the answer
    before.sum().backward();
    training.step();
    if (changes_ids) {
      (void)rows(torch::tensor({3}, at::kLong));
    }
    const at::Tensor after = rows(ids);
    EXPECT_NEAR((after - before).mean().item<double>(), expected, 1e-6);
    EXPECT_TRUE(after.requires_grad());
    EXPECT_NEAR((rows(ids) - before).mean().item<double>(), -1, 1e-6) << "once";
    training.stop();
  };
  std::thread server([&] { join(true); });
  join(false);
  server.join();
}

TEST(PsTraining, IdsThatAreFetchedAheadAreReadBeforeTheStep) {
  read_ahead(UpdateMode::kAsync, /*changes_ids=*/false, 0);
  read_ahead(UpdateMode::kAsync, /*changes_ids=*/true, -1);
  read_ahead(UpdateMode::kSync, /*changes_ids=*/false, -1);
}

TEST(PsTraining, AsyncLearnsToo) {
  const Trained trained = served(2, 2, by_sgd, UpdateMode::kAsync);
  EXPECT_TRUE(at::isfinite(trained.rows).all().item<bool>());
  EXPECT_TRUE(at::isfinite(trained.weight).all().item<bool>());
}

/// One step of two ids, of which the second was clicked twice. `counts`: else by forward().
std::vector<uint64_t> rows_after(bool counts, bool shrink) {
  Embedding rows(EmbeddingOptions{.dim = 2,
                                  .rule = naive(),
                                  .lr = 1,
                                  .entry = shrink ? Entry() : Entry::show_click({.score = 2}),
                                  .statistics = true});
  optim::Optimizer optimizer = optim::SGD(torch::nn::Linear(1, 1), {.lr = 0});
  ServedTraining training(*rows, optimizer, {.roles = Roles::alone()});
  const at::Tensor ids = torch::tensor({{1, 2}, {2, 2}}, at::kLong);
  const at::Tensor clicks = torch::tensor({{0.0F, 1.0F}, {1.0F, 0.0F}});
  const at::Tensor plain = rows(torch::tensor({1}, at::kLong));
  (counts ? rows->look_up(ids, {.clicks = clicks}) : rows(ids)).sum().backward();
  plain.sum().backward();  // without counts: 1 show and no click
  training.step();
  std::vector<uint64_t> there{training.stats()[0].rows};
  if (shrink) {
    training.shrink();
    there.push_back(training.stats()[0].rows);
  }
  training.stop();
  return there;
}

TEST(PsTraining, ClicksOfABatchComeToItsRows) {
  using Rows = std::vector<uint64_t>;
  EXPECT_EQ(rows_after(/*counts=*/true, /*shrink=*/false), Rows{1}) << "2 clicks are enough";
  EXPECT_EQ(rows_after(/*counts=*/false, /*shrink=*/false), Rows{0});
  EXPECT_EQ(rows_after(/*counts=*/true, /*shrink=*/true), (Rows{2, 1}));
  EXPECT_EQ(rows_after(/*counts=*/false, /*shrink=*/true), (Rows{2, 0}));
  Embedding plain(EmbeddingOptions{.dim = 2});
  optim::Optimizer optimizer = optim::SGD(torch::nn::Linear(1, 1), {.lr = 0});
  ServedTraining training(*plain, optimizer, {.roles = Roles::alone()});
  EXPECT_THAT(error_text<UsageError>([&] { training.shrink(); }),
              HasSubstr("[ps.shrink] no table keeps the shows and clicks"));
  training.stop();
}

TEST(PsTraining, ClicksThatDoNotFitAreRefused) {
  ServedNet net;
  ServedTraining training(net, by_sgd(net), {.roles = Roles::alone(), .mode = UpdateMode::kGeo});
  const at::Tensor ids = torch::zeros({2, 3}, at::kLong);
  const auto text_of = [&](const ClickCounts& counts) {
    return error_text<UsageError>([&] { (void)net.words->look_up(ids, counts); });
  };
  EXPECT_THAT(text_of({.clicks = torch::zeros({3, 2})}),
              HasSubstr("of shape [2, 3], as the ids, got f32 on cpu of [3, 2]"));
  EXPECT_THAT(text_of({.shows = torch::ones({2, 3}, at::kLong)}), HasSubstr("got i64 on cpu"));
  EXPECT_THAT(text_of({.shows = torch::ones({2, 3})}), HasSubstr("in kGeo workers send"));
  EXPECT_THAT(text_of({.shows = torch::zeros({2, 3})}), HasSubstr("above 0, by which gradients"));
  EXPECT_THAT(text_of({.clicks = torch::full({2, 3}, -1.0F)}), HasSubstr("0 or more, got -1"));
  EXPECT_THAT(error_text<UsageError>([&] { (void)net.words(torch::zeros({2}, at::kInt)); }),
              HasSubstr("got i32 on cpu: ids.to(torch::kInt64)"));
  training.stop();
}

TEST(PsTraining, TheBarrierDoesNotWaitForAWorkerThatIsGoneForGood) {
  const std::shared_ptr<rendezvous::Store> whole = rendezvous::in_process_store();
  const Job job{.workers = 2,
                .options = {.mode = UpdateMode::kAsync},
                .store = rendezvous::prefix_store(whole, "run/r7/1")};
  const auto soon = [] { return Deadline::after(60s); };
  job.store->set("join/2", "host", soon());  // the rank of worker 1
  std::atomic<bool> told = false;
  run_job(job, [&](ServedTraining& training, ServedNet& /*net*/, int worker) {
    if (worker == 1) {
      while (!told) {  // and never calls it
        std::this_thread::sleep_for(10ms);
      }
      return;
    }
    std::thread launcher([&] {
      std::this_thread::sleep_for(1s);
      told = true;
      rendezvous::tell_missed(*whole, "r7", 2, soon());
    });
    training.barrier();
    EXPECT_TRUE(told);
    launcher.join();
  });
}

TEST(PsTraining, AWorkerThatIsStartedAgainComesToTheBarrierThatIsNext) {
  const std::shared_ptr<rendezvous::Store> store = rendezvous::in_process_store();
  const auto with = [&](bool is_server, int index, const auto& work) {
    ServedNet net;
    ServedTraining training(net,
                            by_sgd(net),
                            {.roles = {.workers = 2, .is_server = is_server, .index = index},
                             .mode = UpdateMode::kAsync,
                             .timeout = 60s,
                             .agent = {.store = store, .token = "secret"}});
    work(training);
  };
  std::atomic<int> met = 0;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { with(true, 0, [](ServedTraining& training) { training.serve(); }); });
  threads.emplace_back([&] {
    with(false, 0, [&](ServedTraining& training) {
      training.barrier();
      training.barrier();
      std::this_thread::sleep_for(1s);
      met = 3;
      training.barrier();
      training.stop();
    });
  });
  threads.emplace_back([&] {
    with(false, 1, [&](ServedTraining& training) {
      training.barrier();
      training.barrier();
    });
    with(false, 1, [&](ServedTraining& training) {
      training.barrier();
      EXPECT_EQ(met, 3) << "it did not wait";
      training.stop();
    });
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST(PsTraining, HalfAsyncWaitsForNobodyWhoIsDone) {
  run_job({.workers = 2, .options = {.mode = UpdateMode::kHalfAsync, .staleness = 1}},
          [](ServedTraining& training, ServedNet& net, int worker) {
            for (int step = 0; step < (worker == 0 ? 10 : 4); ++step) {
              (void)backward(training, net, worker, step);
              training.step();
            }
            EXPECT_EQ(training.steps(), worker == 0 ? 10 : 4);
          });
}

TEST(PsTraining, ASaveWaitsForTheOneBefore) {
  const test::TempDir directory;
  ServedNet net;
  ServedTraining training(
      net,
      by_sgd(net),
      {.roles = Roles::alone(), .checkpoints = (directory.path() / "often").string()});
  const at::Tensor many = torch::arange(400'000).reshape({1, -1});
  net.words(many).sum().backward();  // so that a save takes a while
  training.step();
  training.save();
  training.save((directory.path() / "once").string());
  training.stop();
  for (const char* name : {"often", "once"}) {
    EXPECT_TRUE(std::filesystem::exists(directory.path() / name / checkpoint::step_name(1)))
        << name;
  }
}

TEST(PsTraining, TheGivenOptimizerMakesNoStepsWhileServersMakeThem) {
  for (const UpdateMode mode : {UpdateMode::kSync, UpdateMode::kGeo}) {
    ServedNet net;
    optim::Optimizer optimizer = by_sgd(net);
    {
      ServedTraining training(net, optimizer, {.roles = Roles::alone(), .mode = mode});
      loss_of(net, 0, 0).backward();
      EXPECT_THAT(error_text<UsageError>([&] { optimizer.step(); }),
                  AllOf(HasSubstr("[ps.training]"),
                        HasSubstr("call training.step(), or take training.optimizer()")));
      training.step();
      training.optimizer().step();
      EXPECT_EQ(training.steps(), 2);
      training.stop();
    }
    optimizer.step();  // nobody else makes them any more
  }
}

TEST(PsTraining, WhatCannotBeIsSaid) {
  ServedNet net;
  EXPECT_THROW((void)net.forward(torch::zeros({2, 3}, at::kLong)), UsageError);
  EXPECT_THROW((void)Embedding(EmbeddingOptions{.dim = 0}), UsageError);
  const auto text_of = [&](const optim::Optimizer& optimizer) {
    try {
      const ServedTraining training(net, optimizer, {});
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(text_of(optim::SGD(net, {.lr = 0.1, .grad_clip = optim::ClipGradByGlobalNorm(1.0)})),
              HasSubstr("clips gradients"));
  torch::nn::Linear wide(2, 2);
  wide->to(at::kDouble);
  EXPECT_THAT(text_of(optim::SGD(wide, {.lr = 0.1})), HasSubstr("weight: parameters on servers"));
}

void set(const char* name, const char* value) {
  value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);  // NOLINT: one thread
}

std::string roles_error() {
  try {
    (void)Roles::from_environment();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(Roles, AreReadFromPaddlesVariables) {
  EXPECT_THAT(roles_error(), HasSubstr("PADDLE_PSERVERS_IP_PORT_LIST is not set"));
  set("PADDLE_PSERVERS_IP_PORT_LIST", "10.0.0.1:5000,10.0.0.2:5000");
  set("PADDLE_TRAINERS_NUM", "3");
  EXPECT_THAT(roles_error(), HasSubstr("TRAINING_ROLE is not set"));
  set("TRAINING_ROLE", "TRAINER");
  set("PADDLE_TRAINER_ID", "2");
  const Roles worker = Roles::from_environment();
  EXPECT_FALSE(worker.is_server);
  EXPECT_EQ(worker.index, 2);
  EXPECT_EQ(worker.servers, 2);
  EXPECT_EQ(worker.workers, 3);
  EXPECT_EQ(worker.meeting, "10.0.0.1:5000");
  set("PADDLE_TRAINER_ID", "3");
  EXPECT_THAT(roles_error(), HasSubstr("PADDLE_TRAINER_ID is 3"));
  set("PADDLE_TRAINER_ID", "x");
  EXPECT_THAT(roles_error(), HasSubstr("got \"x\""));
  set("TRAINING_ROLE", "PSERVER");
  set("POD_IP", "10.0.0.2");
  set("PADDLE_PORT", "5000");
  EXPECT_EQ(Roles::from_environment().index, 1);
  EXPECT_TRUE(Roles::from_environment().is_server);
  set("PADDLE_PORT", "5001");
  EXPECT_THAT(roles_error(), HasSubstr("10.0.0.2:5001, which is not in"));
  set("TRAINING_ROLE", "HETER_TRAINER");
  EXPECT_THAT(roles_error(), HasSubstr("expected PSERVER or TRAINER"));
}

}  // namespace
}  // namespace argosy::ps
