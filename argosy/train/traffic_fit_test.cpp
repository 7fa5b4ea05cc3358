// fit() with the strategies that save traffic.
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/comm/collectives.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/resume_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using ::testing::HasSubstr;
using namespace argosy::train::testing;  // NOLINT(google-build-using-namespace)

struct Way {
  const char* name;
  fleet::DistributedStrategy strategy;
  bool adam = false;
};

std::vector<Way> ways() {
  return {
      {"powersgd",
       {.power_sgd = true,
        .power_sgd_configs = {.start_power_sgd_iter = 2, .min_compression_rate = 0.1}},
       true},
      {"dgc",
       {.dgc = true,
        .dgc_configs = {.rampup_begin_step = 2, .sparsity = {0.5}, .min_elements = 16}}},
      {"localsgd", {.localsgd = true, .localsgd_configs = {.k_steps = 5, .begin_step = 3}}},
      {"adaptive", {.adaptive_localsgd = true, .adaptive_localsgd_configs = {.init_k_steps = 4}}},
      {"streaming",
       {.diloco = true,
        .diloco_configs = {.sync_every = 5, .fragments = 2, .fragment_sync_delay = 2, .bits = 4}},
       true}};
}

Model prepared(const SmallNet& net, const Way& way) {
  Model model(net);
  optim::Optimizer optimizer = way.adam ? optim::Optimizer(optim::Adam(net, {.lr = 0.05}))
                                        : optim::Optimizer(optim::Momentum(net, {.lr = 0.05}));
  model.prepare(optimizer,
                loss::CrossEntropy(),
                {metrics::Accuracy()},
                {.schedule = optim::per_step(optim::CosineAnnealingLR(optimizer, {.t_max = 40}))});
  return model;
}

TEST(TrafficFit, RanksEndAlikeAndResumesHaveTheSameBits) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    const test::TempDir folder;
    run_job(
        2,
        [&](int rank) {
          const SmallNet through = small_net();
          Model model = prepared(through, way);
          const auto history =
              model.fit(blobs(96), blobs(30), options_in(folder.path().string() + "/through"));
          const auto all = comm::all_gather_object(hash(through), fleet::group());
          EXPECT_EQ(all[0], all[1]) << "ranks end with weights of their own";
          EXPECT_GT(history.epochs.back()["eval_acc"], 0.7);

          FitOptions options = options_in(folder.path().string() + "/parts");
          for (const int64_t stop : {4, 17, 0}) {  // in an update that sums, or does not
            const SmallNet net = small_net();
            Model part = prepared(net, way);
            options.resume = Resume::kAuto;
            options.callbacks.clear();
            if (stop > 0) {
              options.callbacks.emplace_back(SignalAt(stop));
            }
            const auto ended = part.fit(blobs(96), blobs(30), options).ended;
            EXPECT_EQ(ended, stop > 0 ? Ended::kPreempted : Ended::kFinished);
            if (stop == 0) {
              EXPECT_EQ(hash(net), hash(through)) << "rank " << rank;
            }
          }
        },
        way.strategy);
  }
}

/// With running statistics, which are those of a virtual rank between two sums.
struct NormNetImpl : torch::nn::Module {
  NormNetImpl() {
    first = register_module("first", torch::nn::Linear(kFeatures, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    second = register_module("second", torch::nn::Linear(8, kClasses));
  }
  torch::Tensor forward(const torch::Tensor& x) { return second(norm(first(x)).relu()); }
  torch::nn::Linear first{nullptr}, second{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(NormNet);

/// Trains four virtual ranks, up to the update `stop` or to the end. Returns what all processes
/// have: weights, buffers, figures.
std::string trained(const Way& way, int processes, const std::string& folder, int64_t stop) {
  const test::TempDir results;
  fleet::DistributedStrategy strategy = way.strategy;
  strategy.virtual_ranks = 4;
  run_job(
      processes,
      [&](int rank) {
        torch::manual_seed(7);
        const NormNet net;
        Model model(net);
        const engine::NamedTensors parameters = engine::named_parameters(net);
        model.prepare(way.adam ? optim::Optimizer(optim::Adam(parameters, {.lr = 0.05}))
                               : optim::Optimizer(optim::Momentum(parameters, {.lr = 0.05})),
                      loss::CrossEntropy(),
                      {metrics::Accuracy()});
        FitOptions options = options_in(folder);
        options.resume = Resume::kAuto;
        options.accumulate_grad_batches = 2;
        if (stop > 0) {
          options.callbacks.emplace_back(SignalAt(stop));
        }
        const History history = model.fit(blobs(192), blobs(31), options);
        std::ofstream(results.path() / std::to_string(rank))
            << checkpoint::weights_hash(engine::state_dict(*net)) << " "
            << (stop > 0 ? "" : history.epochs.back().to_string());
      },
      strategy);
  std::string first;
  for (int rank = 0; rank < processes; ++rank) {
    std::stringstream text;
    text << std::ifstream(results.path() / std::to_string(rank)).rdbuf();
    first = rank == 0 ? text.str() : first;
    EXPECT_TRUE(stop > 0 || text.str() == first) << "rank " << rank << " of " << processes;
  }
  return first;
}

TEST(TrafficFit, VirtualRanksHaveTheSameBitsOnAnyNumberOfProcesses) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    const test::TempDir folder;
    const auto in = [&](const char* name) { return (folder.path() / name).string(); };
    const std::string expected = trained(way, 4, in("four"), 0);
    EXPECT_THAT(expected, HasSubstr("eval_acc"));
    EXPECT_EQ(trained(way, 1, in("one"), 0), expected);
    EXPECT_EQ(trained(way, 3, in("three"), 0), expected);
    static_cast<void>(trained(way, 4, in("parts"), 4));
    static_cast<void>(trained(way, 2, in("parts"), 10));
    EXPECT_EQ(trained(way, 1, in("parts"), 0), expected);
  }
}

TEST(TrafficFit, EvaluatesAndSavesWhatRanksHaveTogether) {
  const test::TempDir folder;
  run_job(
      2,
      [&](int rank) {
        const SmallNet net = small_net();
        Model model = prepared(net, ways()[2]);
        FitOptions options = options_in(folder.path().string() + "/a");
        options.num_iters = 10;  // two steps after an average
        model.fit(blobs(96), options);
        const std::string together = hash(net);
        model.optimizer().use_shared_weights(false);
        const std::string own = hash(net);
        const auto all = comm::all_gather_object(own, fleet::group());
        EXPECT_NE(all[0], all[1]) << "the test tests nothing";
        const std::string file = folder.path().string() + "/weights.safetensors";
        model.save(file);
        EXPECT_EQ(hash(net), own);
        EXPECT_EQ(checkpoint::weights_hash(checkpoint::read_weights(file)), together);
        EXPECT_NE(own, together) << rank;
      },
      ways()[2].strategy);
}

TEST(TrafficFit, BeginsAtTheWeightsThatWereLoaded) {
  const Way way{"diloco", {.diloco = true, .diloco_configs = {.sync_every = 5}}, true};
  const test::TempDir folder;
  run_job(
      2,
      [&](int) {
        const std::string file = folder.path().string() + "/pretrained.safetensors";
        const auto pretrained = [] {
          torch::manual_seed(8);
          return SmallNet();
        };
        {
          const SmallNet net = pretrained();
          Model model(net);
          model.save(file);
        }
        const auto trained = [&](bool loads) {
          const SmallNet net = loads ? small_net() : pretrained();
          Model model = prepared(net, way);
          if (loads) {
            model.load(file);
          }
          model.fit(blobs(96), {.batch_size = 4, .data = {.seed = 5}, .log = {.verbose = 0}});
          return hash(net);
        };
        const std::string loaded = trained(true);
        EXPECT_EQ(loaded, trained(false));
      },
      way.strategy);
}

TEST(TrafficFit, WeightsLoadedAfterFitStay) {
  const test::TempDir folder;
  run_job(
      2,
      [&](int) {
        const SmallNet net = small_net();
        Model model = prepared(net, ways()[2]);
        const std::string file = folder.path().string() + "/begun.safetensors";
        model.save(file);
        const std::string begun = hash(net);
        model.fit(blobs(96),
                  {.batch_size = 4, .num_iters = 10, .data = {.seed = 5}, .log = {.verbose = 0}});
        EXPECT_NE(hash(net), begun);
        model.load(file);
        model.optimizer().use_shared_weights(false);  // as the next fit() begins
        EXPECT_EQ(hash(net), begun);
      },
      ways()[2].strategy);
}

TEST(TrafficFit, AnEarlyStopGivesAllRanksTheSameBestWeights) {
  run_job(
      2,
      [](int) {
        const SmallNet net = small_net();
        Model model = prepared(net, ways()[2]);
        const auto history =
            model.fit(blobs(96),
                      blobs(30),
                      {.batch_size = 4,
                       .epochs = 3,
                       .callbacks = {EarlyStopping(
                           {.min_delta = 100, .restore_best_weights = true, .verbose = 0})},
                       .data = {.seed = 5},
                       .log = {.verbose = 0}});
        EXPECT_EQ(history.ended, Ended::kStopped);
        const std::string best = hash(net);
        const auto all = comm::all_gather_object(best, fleet::group());
        EXPECT_EQ(all[0], all[1]) << "each rank has got its own";
        model.optimizer().use_shared_weights(false);  // as the next fit() begins
        EXPECT_EQ(hash(net), best);
      },
      ways()[2].strategy);
}

TEST(TrafficFit, RefusesAnAverageOfOwnWeights) {
  run_job(2,
          [](int) {
            const SmallNet net = small_net();
            Model model(net);
            EXPECT_THAT(test::error_text<UsageError>([&] {
                          model.prepare(
                              optim::Momentum(net, {.lr = 0.1}),
                              loss::CrossEntropy(),
                              {},
                              {.ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
                        }),
                        HasSubstr("ema and the strategy's localsgd exclude each other"));
          },
          {.localsgd = true});
}

}  // namespace
}  // namespace argosy::train
