#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/fleet/fleet.h"
#include "argosy/loss/from_network.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/perplexity.h"
#include "argosy/optim/optim.h"
#include "argosy/os/fd.h"
#include "argosy/train/amp_test_support.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::train {
namespace {

using testing::blobs;
using ::testing::ElementsAre;
using testing::expect_same;
using ::testing::HasSubstr;
using testing::run_job;
using testing::sgd_model;
using testing::small_net;
using testing::SmallNet;

const optim::SGDOptions kMomentum{.lr = 0.1, .momentum = 0.9};

/// The weights after the same training by hand.
SmallNet by_hand(int64_t samples, int64_t batch_size, int epochs) {
  SmallNet net = small_net();
  const auto set = blobs(samples);
  data::DataLoader loader(
      set, fleet::distributed_batch_sampler(samples, {.batch_size = batch_size, .shuffle = true}));
  optim::SGD optimizer(net, {.lr = 0.1, .momentum = 0.9});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (auto& [x, y] : loader) {
      torch::nn::functional::cross_entropy(net->forward(x), y).backward();
      optimizer.step();
      optimizer.zero_grad();
    }
  }
  return net;
}

void expect_same_weights(const SmallNet& a, const SmallNet& b) {
  const auto left = engine::named_parameters(a);
  const auto right = engine::named_parameters(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_TRUE(torch::equal(left[i].second, right[i].second)) << left[i].first;
  }
}

double largest_difference(const SmallNet& a, const SmallNet& b) {
  double most = 0;
  const auto left = engine::named_parameters(a);
  const auto right = engine::named_parameters(b);
  for (std::size_t i = 0; i < left.size(); ++i) {
    most = std::max(most, (left[i].second - right[i].second).abs().max().item<double>());
  }
  return most;
}

template <typename Optimizer>
std::vector<at::Tensor> weights_after_fit(const std::function<Optimizer(const SmallNet&)>& make) {
  const SmallNet net = small_net();
  Model model(net);
  model.prepare(make(net), loss::CrossEntropy());
  model.fit(blobs(48), {.batch_size = 8, .epochs = 2, .log = {.verbose = 0}});
  return net->parameters();
}

/// Training with `theirs` under the strategy comes to the bits of training with `ours`.
template <typename Theirs, typename Ours>
void expect_the_strategys(const fleet::DistributedStrategy& strategy,
                          const std::function<Theirs(const SmallNet&)>& theirs,
                          const std::function<Ours(const SmallNet&)>& ours) {
  const test::TempDir folder;
  const std::string kept = (folder.path() / "weights.pt").string();
  run_job(2, [&](int rank) {
    const auto weights = weights_after_fit(ours);
    if (rank == 0) {
      torch::save(weights, kept);
    }
  });
  run_job(
      2,
      [&](int) {
        std::vector<at::Tensor> expected;
        torch::load(expected, kept);
        expect_same(weights_after_fit(theirs), expected);
      },
      strategy);
}

TEST(Fit, TheStrategysLarsTakesThePlaceOfMomentum) {
  expect_the_strategys<optim::Momentum, optim::Lars>(
      {.lars = true, .lars_configs = {.lars_coeff = 0.01, .lars_weight_decay = 0.002}},
      [](const SmallNet& net) { return optim::Momentum(net, {.lr = 0.2, .momentum = 0.8}); },
      [](const SmallNet& net) {
        return optim::Lars(net,
                           {.lr = 0.2, .momentum = 0.8, .lars_coeff = 0.01, .weight_decay = 0.002});
      });
}

TEST(Fit, TheStrategysLambTakesThePlaceOfAdamW) {
  expect_the_strategys<optim::AdamW, optim::Lamb>(
      {.lamb = true, .lamb_configs = {.lamb_weight_decay = 0.3}},
      [](const SmallNet& net) { return optim::AdamW(net, {.lr = 0.1, .eps = 1e-6}); },
      [](const SmallNet& net) {
        return optim::Lamb(net, {.lr = 0.1, .eps = 1e-6, .weight_decay = 0.3});
      });
}

TEST(Fit, SaveWritesTheFileOfFleetsSave) {
  const test::TempDir folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  run_job(2, [&](int rank) {
    const SmallNet net = small_net();
    Model model = sgd_model(net);
    model.save(path("model.pt"));
    fleet::save(fleet::distributed_model(net), path("fleet.pt"));
    if (rank == 0) {
      EXPECT_EQ(*os::read_file(path("model.pt")), *os::read_file(path("fleet.pt")));
    }
  });
}

TEST(Fit, AloneGivesTheBitsOfTheLoopByHand) {
  run_job(1, [](int) {
    const auto train = blobs(50);
    const SmallNet net = small_net();
    Model model = sgd_model(net, kMomentum);
    const History history =
        model.fit(train, {.batch_size = 8, .epochs = 3, .num_workers = 2, .log = {.verbose = 0}});
    expect_same_weights(net, by_hand(50, 8, 3));
    EXPECT_EQ(history.steps, 21);
    ASSERT_EQ(history.epochs.size(), 3U);
    EXPECT_LT(history.epochs[2]["loss"], history.epochs[0]["loss"]);
    EXPECT_GT(history.epochs[2]["acc"], 0.5);
  });
}

TEST(Fit, TwoRanksTrainAsOneOfTwiceTheBatch) {
  run_job(2, [](int) {
    const auto train = blobs(48);
    const SmallNet net = small_net();
    Model model = sgd_model(net, kMomentum);
    const History history = model.fit(train, {.batch_size = 4, .epochs = 2, .log = {.verbose = 0}});
    // Paddle's order laid side by side is that of one rank with twice the batch.
    SmallNet alone = small_net();
    const data::DistributedBatchSampler order(48, {.batch_size = 8, .shuffle = true});
    optim::SGD optimizer(alone, {.lr = 0.1, .momentum = 0.9});
    for (int epoch = 0; epoch < 2; ++epoch) {
      const data::BatchPlan plan = order.plan(epoch);
      for (int64_t i = 0; i < plan.size(); ++i) {
        std::vector<at::Tensor> xs;
        std::vector<at::Tensor> ys;
        for (const int64_t index : plan[i]) {
          auto [x, y] = train.get(index);
          xs.push_back(x);
          ys.push_back(y);
        }
        torch::nn::functional::cross_entropy(alone->forward(torch::stack(xs)), torch::stack(ys))
            .backward();
        optimizer.step();
        optimizer.zero_grad();
      }
    }
    EXPECT_LT(largest_difference(net, alone), 1e-6);
    EXPECT_EQ(history.steps, 12);
  });
}

/// Remembers what the hooks of training were told.
struct Recorder : Callback {
  std::vector<std::string>* order;
  explicit Recorder(std::vector<std::string>& given) : order(&given) {}
  void on_train_begin(const Training& /*t*/) override { order->emplace_back("train_begin"); }
  void on_train_end(const Training& /*t*/) override { order->emplace_back("train_end"); }
  void on_epoch_begin(const Epoch& e) override { add("epoch_begin", e.epoch); }
  void on_epoch_end(const Epoch& e) override { add("epoch_end", e.epoch); }
  void on_train_batch_begin(const Step& s) override { add("batch_begin", s.batch); }
  void on_before_update(const Step& s) override { add("before_update", s.step); }
  void on_train_batch_end(const Step& s) override { add("batch_end", s.step); }
  void on_eval_begin(const Evaluation& /*e*/) override { order->emplace_back("eval_begin"); }
  void on_eval_end(const Evaluation& /*e*/) override { order->emplace_back("eval_end"); }
  void add(const char* what, int64_t number) const {
    order->push_back(std::string(what) + " " + std::to_string(number));
  }
};

TEST(Fit, HooksComeInPaddlesOrder) {
  run_job(1, [](int) {
    std::vector<std::string> order;
    Model model = sgd_model(small_net(), kMomentum);
    model.fit(blobs(6),
              blobs(3),
              {.batch_size = 4, .callbacks = {Recorder(order)}, .log = {.verbose = 0}});
    EXPECT_THAT(order,
                ElementsAre("train_begin",
                            "epoch_begin 0",
                            "batch_begin 0",
                            "before_update 0",
                            "batch_end 1",
                            "batch_begin 1",
                            "before_update 1",
                            "batch_end 2",
                            "eval_begin",
                            "eval_end",
                            "epoch_end 0",
                            "train_end"));
  });
}

struct SaveOften : Callback {
  const torch::nn::Module& net;
  std::string path;
  SaveOften(const torch::nn::Module& module, std::string where)
      : net(module), path(std::move(where)) {}
  void on_train_batch_begin(const Step& /*step*/) override { fleet::save(net, path); }
  void on_train_batch_end(const Step& /*step*/) override { fleet::save(net, path); }
};

TEST(Fit, ACallbackMaySaveInEachOfItsHooks) {
  const test::TempDir folder;
  for (const int ranks : {1, 2}) {
    run_job(ranks, [&](int) {
      const SmallNet net = small_net();
      Model model = sgd_model(net, kMomentum);
      model.fit(blobs(12),
                {.batch_size = 2,
                 .callbacks = {SaveOften(*net, folder.path() / "model.pt")},
                 .accumulate_grad_batches = 2,
                 .log = {.verbose = 0}});
    });
  }
}

TEST(Fit, AccumulatedBatchesAverageAsOneBatch) {
  for (const int ranks : {1, 2}) {
    run_job(ranks, [ranks](int) {
      const auto train = blobs(40);
      const SmallNet apart = small_net();
      Model model = sgd_model(apart, kMomentum);
      const History history = model.fit(train,
                                        {.batch_size = 2,
                                         .accumulate_grad_batches = 4,
                                         .data = {.shuffle = false},
                                         .log = {.verbose = 0}});
      // 20 (or 10) batches: the last update has fewer where 4 does not divide them.
      EXPECT_EQ(history.steps, ranks == 1 ? 5 : 3);
      if (ranks == 1) {
        const SmallNet together = small_net();
        Model other = sgd_model(together, kMomentum);
        other.fit(train, {.batch_size = 8, .data = {.shuffle = false}, .log = {.verbose = 0}});
        EXPECT_LT(largest_difference(apart, together), 1e-6);
      }
    });
  }
}

TEST(Fit, AShortRestOfAnEpochIsAveragedOverItsOwnBatches) {
  run_job(1, [](int) {
    const auto train = blobs(6);
    const SmallNet apart = small_net();
    Model model = sgd_model(apart, kMomentum);
    model.fit(train,
              {.batch_size = 2,
               .accumulate_grad_batches = 2,
               .data = {.shuffle = false},
               .log = {.verbose = 0}});
    SmallNet hand = small_net();
    optim::SGD optimizer(hand, {.lr = 0.1, .momentum = 0.9});
    const auto mean_loss = [&](int64_t from, int64_t to) {
      std::vector<at::Tensor> xs;
      std::vector<at::Tensor> ys;
      for (int64_t i = from; i < to; ++i) {
        auto [x, y] = train.get(i);
        xs.push_back(x);
        ys.push_back(y);
      }
      return torch::nn::functional::cross_entropy(hand->forward(torch::stack(xs)),
                                                  torch::stack(ys));
    };
    mean_loss(0, 4).backward();
    optimizer.step();
    optimizer.zero_grad();
    mean_loss(4, 6).backward();
    optimizer.step();
    EXPECT_LT(largest_difference(apart, hand), 1e-6);
  });
}

struct StopAt : Callback {
  int64_t at;
  int rank;
  bool now;
  StopAt(int64_t at_step, int on_rank, bool at_once) : at(at_step), rank(on_rank), now(at_once) {}
  void on_train_batch_end(const Step& step) override {
    if (step.step == at && step.model.group().rank() == rank) {
      now ? step.model.stop("enough") : step.model.stop_training("enough");
    }
  }
};

TEST(Fit, WhatOneRankAsksForAllDo) {
  run_job(3, [](int rank) {
    Model model = sgd_model(small_net(), kMomentum);
    const History now = model.fit(
        blobs(60),
        {.batch_size = 2, .epochs = 2, .callbacks = {StopAt(3, 1, true)}, .log = {.verbose = 0}});
    EXPECT_EQ(now.steps, 4);  // asked for after step 3, agreed on in the next one
    EXPECT_EQ(now.ended, Ended::kStopped);
    EXPECT_EQ(now.reason, rank == 1 ? "enough" : "another rank asked for it");
    const History later = model.fit(
        blobs(60),
        {.batch_size = 2, .epochs = 3, .callbacks = {StopAt(6, 2, false)}, .log = {.verbose = 0}});
    EXPECT_EQ(later.steps, 14);  // to the end of that epoch of ten
    EXPECT_EQ(later.epochs.size(), 1U);
  });
}

TEST(Fit, WhatASpareAsksForAllDo) {
  run_job(3, [](int rank) {
    Model model = sgd_model(small_net(), kMomentum);
    const History history = model.fit(blobs(60),
                                      {.batch_size = 2,
                                       .epochs = 2,
                                       .virtual_ranks = 2,
                                       .callbacks = {StopAt(3, 2, true)},
                                       .log = {.verbose = 0}});
    EXPECT_EQ(history.steps, 4);
    EXPECT_EQ(history.reason, rank == 2 ? "enough" : "another rank asked for it");
  });
}

TEST(Fit, GradientsOfAnUpdateThatAnExceptionEndedAreNotTheNextOnes) {
  run_job(1, [](int) {
    struct Throws : Callback {
      void on_train_batch_end(const Step& /*step*/) override { throw std::runtime_error("mine"); }
    };
    const SmallNet net = small_net();
    Model model = sgd_model(net, kMomentum);
    EXPECT_THROW(model.fit(blobs(32),
                           {.batch_size = 4,
                            .callbacks = {Throws()},
                            .accumulate_grad_batches = 2,
                            .log = {.verbose = 0}}),
                 std::runtime_error);
    model.fit(blobs(32), {.batch_size = 4, .log = {.verbose = 0}});
    expect_same_weights(net, by_hand(32, 4, 1));
  });
}

TEST(Fit, AnUpdateThatBackwardHasMadeWhenAnExceptionComesIsNotInTheWay) {
  const test::TempDir folder;
  test::run_ranks(
      2,
      [&](int rank) {
        fleet::init({.overlap_update = true},
                    {.init_method = "file://" + folder.path().string() + "/store",
                     .timeout = std::chrono::seconds(30),
                     .rank = rank,
                     .world_size = 2});
        struct Throws : Callback {
          void on_before_update(const Step& step) override {
            if (step.step == 2) {
              throw std::runtime_error("mine");
            }
          }
        };
        const SmallNet net = small_net();
        Model model = sgd_model(net, kMomentum);
        EXPECT_THROW(
            model.fit(blobs(64), {.batch_size = 4, .callbacks = {Throws()}, .log = {.verbose = 0}}),
            std::runtime_error);
        const at::Tensor before = net->first->weight.detach().clone();
        EXPECT_EQ(model.fit(blobs(64), {.batch_size = 4, .log = {.verbose = 0}}).steps, 10);
        EXPECT_FALSE(torch::equal(net->first->weight, before));
        fleet::stop_worker();
      },
      {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(60)});
}

TEST(Fit, APrepareThatIsRefusedChangesNothing) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model(net);
    const optim::SGD first(net, {.lr = 0.1});
    model.prepare(first, loss::CrossEntropy(), {}, {.ema = {{.decay = 0.5}}});
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  model.prepare(optim::SGD(net, {.lr = 0.9}),
                                loss::CrossEntropy(),
                                {metrics::Accuracy()},
                                {.ema = {{.decay = 2}}});
                }),
                HasSubstr("decay must be in [0, 1]"));
    EXPECT_EQ(model.optimizer().lr(), 0.1);
    const History history = model.fit(blobs(8), {.batch_size = 4, .log = {.verbose = 0}});
    EXPECT_EQ(history.epochs.back().find("acc"), nullptr);
  });
}

TEST(Fit, NumItersEndsItWhateverTheEpochs) {
  run_job(1, [](int) {
    Model model = sgd_model(small_net(), kMomentum);
    const History history =
        model.fit(blobs(8), {.batch_size = 4, .epochs = 10, .num_iters = 5, .log = {.verbose = 0}});
    EXPECT_EQ(history.steps, 5);
    EXPECT_EQ(history.ended, Ended::kFinished);
    EXPECT_EQ(history.epochs.size(), 3U);
  });
}

TEST(Evaluate, CountsEachSampleOnceOverAnyNumberOfRanks) {
  const test::TempDir folder;
  for (const int ranks : {1, 2, 3}) {
    run_job(ranks, [&](int rank) {
      Model model = sgd_model(small_net(), kMomentum);
      const Logs logs = model.evaluate(blobs(31), {.batch_size = 4, .verbose = 0});
      std::ofstream(fmt::format("{}/{}.{}", folder.path().string(), ranks, rank))
          << fmt::format("{} {}", logs["acc"], logs["loss"]);
    });
  }
  const auto figures = [&](int ranks, int rank) {
    std::ifstream file(fmt::format("{}/{}.{}", folder.path().string(), ranks, rank));
    std::pair<double, double> read;
    file >> read.first >> read.second;
    return read;
  };
  const auto alone = figures(1, 0);
  for (const int ranks : {2, 3}) {
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(figures(ranks, rank), figures(ranks, 0));
      EXPECT_EQ(figures(ranks, rank).first, alone.first);
      EXPECT_NEAR(figures(ranks, rank).second, alone.second, 1e-7);
    }
  }
}

TEST(Predict, ComesBackInOrderAlsoWhereARankHasNothing) {
  run_job(3, [](int) {
    SmallNet net = small_net();
    Model model = sgd_model(net, kMomentum);
    for (const int64_t samples : {2, 7, 30}) {
      const auto set = blobs(samples);
      const auto outputs = model.predict(set, {.batch_size = 4, .verbose = 0});
      const torch::NoGradGuard no_grad;
      for (int64_t i = 0; i < samples; ++i) {
        const auto [x, y] = set.get(i);
        EXPECT_TRUE(torch::allclose(outputs[0][i], net->forward(x.unsqueeze(0))[0], 1e-5, 1e-6));
      }
    }
  });
}

TEST(Fit, ALoaderThatIgnoresTheRanksIsAnError) {
  run_job(2, [](int) {
    Model model = sgd_model(small_net(), kMomentum);
    const auto set = blobs(20);
    data::DataLoader loader(set, {.batch_size = 4, .shuffle = true});
    const std::string text =
        test::error_text<UsageError>([&] { model.fit(loader, {.log = {.verbose = 0}}); });
    EXPECT_THAT(text, HasSubstr("[train.fit] ranks 0 and 1 have the same batches"));
    EXPECT_THAT(text, HasSubstr("fleet::distributed_batch_sampler"));
    EXPECT_THAT(test::error_text<UsageError>([&] { model.evaluate(loader, {.verbose = 0}); }),
                HasSubstr("fleet::evaluation_sampler"));
    data::DataLoader good(
        set, fleet::distributed_batch_sampler(set.size(), {.batch_size = 4, .shuffle = true}));
    EXPECT_EQ(model.fit(good, {.log = {.verbose = 0}}).steps, 3);
  });
}

TEST(Fit, RanksWithDifferentNumbersOfBatchesAreAnError) {
  run_job(2, [](int rank) {
    Model model = sgd_model(small_net(), kMomentum);
    const auto set = blobs(20);
    data::DataLoader loader(set, data::BatchSampler(2 + rank, [rank](int64_t) {
                              return data::BatchPlan(
                                  {0 + rank, 2 + rank, 4 + rank, 6 + rank, 8 + rank},
                                  {.batch_size = 2});
                            }));
    EXPECT_THAT(test::error_text<UsageError>([&] { model.fit(loader, {.log = {.verbose = 0}}); }),
                HasSubstr("rank 1 has 3 batches an epoch, rank 0 has 2"));
  });
}

TEST(Fit, WhatIsMissingIsSaid) {
  run_job(1, [](int) {
    Model bare(small_net());
    EXPECT_THAT(test::error_text<UsageError>([&] { bare.fit(blobs(4)); }),
                HasSubstr("call prepare() first"));
    bare.prepare(loss::CrossEntropy());
    EXPECT_THAT(test::error_text<UsageError>([&] { bare.fit(blobs(4)); }),
                HasSubstr("the model has no optimizer"));
    Model model = sgd_model(small_net(), kMomentum);
    EXPECT_THAT(test::error_text<UsageError>([&] { model.fit(blobs(4), {.epochs = 0}); }),
                HasSubstr("epochs must be positive, got 0"));
    EXPECT_THAT(test::error_text<UsageError>(
                    [&] { model.fit(blobs(7), {.batch_size = 8, .data = {.drop_last = true}}); }),
                HasSubstr("of 7 samples, gives a rank no batch"));
    const data::TensorDataset<1> unlabelled(torch::zeros({4, testing::kFeatures}));
    EXPECT_THAT(
        test::error_text<UsageError>([&] { model.fit(unlabelled, {.log = {.verbose = 0}}); }),
        HasSubstr("there are no labels for the loss"));
  });
}

/// Computes its loss itself.
struct LossNetImpl : torch::nn::Module {
  LossNetImpl() { net = register_module("net", small_net()); }
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& labels) {
    return torch::nn::functional::cross_entropy(net->forward(x), labels);
  }
  SmallNet net{nullptr};
};
struct LossNet : torch::nn::ModuleHolder<LossNetImpl> {
  using torch::nn::ModuleHolder<LossNetImpl>::ModuleHolder;
  static constexpr bool kTakesLabels = true;
};

TEST(Fit, ANetworkMayTakeTheLabelsAndReturnItsLoss) {
  const FitOptions options{.batch_size = 4, .epochs = 2, .log = {.verbose = 0}};
  run_job(2, [&](int) {
    const SmallNet net = small_net();
    const History usual = sgd_model(net, {.lr = 0.1}, {}).fit(blobs(50), blobs(25), options);
    LossNet own;
    Model model(own);
    model.prepare(optim::SGD(own, {.lr = 0.1}), loss::FromNetwork(), {metrics::Perplexity()});
    const History history = model.fit(blobs(50), blobs(25), options);
    expect_same(own->parameters(), net->parameters());
    ASSERT_EQ(history.epochs.size(), 2U);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      for (const std::string of : {"", "eval_"}) {
        const double loss = history.epochs[epoch][of + "loss"];
        EXPECT_EQ(loss, usual.epochs[epoch][of + "loss"]);
        EXPECT_DOUBLE_EQ(history.epochs[epoch][of + "perplexity"], std::exp(loss));
      }
    }
  });
}

}  // namespace
}  // namespace argosy::train
