#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/metrics/accuracy.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/train.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::train {
namespace {

using testing::blobs;
using ::testing::HasSubstr;
using testing::printed;
using testing::run_job;
using testing::sgd_model;
using testing::small_net;
using testing::SmallNet;

TEST(ProgressBarOfTraining, PrintsPaddlesLines) {
  run_job(1, [](int) {
    auto now = std::chrono::steady_clock::time_point();
    const auto clock = [&] { return now += std::chrono::milliseconds(5); };
    const std::string text = printed([&](std::FILE* file) {
      Model model = sgd_model();
      model.fit(blobs(20),
                {.batch_size = 4,
                 .epochs = 2,
                 .callbacks = {ProgBarLogger({.verbose = 2, .out = file, .now = clock})},
                 .log = {.verbose = 0, .freq = 2}});
    });
    EXPECT_THAT(text, HasSubstr("Epoch 1/2\n"));
    EXPECT_THAT(text,
                ::testing::ContainsRegex("step 2/5 - loss: [0-9.]+ - acc: [0-9.]+ - 5ms/step\n"));
    EXPECT_THAT(text,
                ::testing::ContainsRegex("step 5/5 - loss: [0-9.]+ - acc: [0-9.]+ - 5ms/step\n"));
    EXPECT_THAT(text, ::testing::Not(HasSubstr("step 1/5")));
  });
}

struct WordsImpl : torch::nn::Module {
  WordsImpl() { table = register_module("table", torch::nn::EmbeddingBag(9, 2)); }
  torch::Tensor forward(const torch::Tensor& tokens) { return table->forward(tokens); }
  torch::nn::EmbeddingBag table{nullptr};
};
TORCH_MODULE(Words);

TEST(ProgressBarOfTraining, CountsTokens) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    auto now = std::chrono::steady_clock::time_point();
    const auto clock = [&] { return now += std::chrono::milliseconds(5); };
    const std::string text = printed([&](std::FILE* file) {
      Words words;
      Model model(words);
      model.prepare(optim::SGD(words, {.lr = 0.1}), loss::CrossEntropy());
      const data::TensorDataset<2> set(torch::arange(60).remainder(9).view({20, 3}),
                                       torch::arange(20).remainder(2));
      model.fit(set,
                set,
                {.batch_size = 4,
                 .run_dir = folder.path().string(),
                 .callbacks = {ProgBarLogger({.verbose = 2, .out = file, .now = clock})},
                 .log = {.verbose = 0, .freq = 2}});
    });
    // Two batches of 4 times 3 tokens in 10 ms, then one in 5.
    EXPECT_THAT(text, HasSubstr(" - 5ms/step - 2,400 tokens/s\nstep 4/5"));
    EXPECT_THAT(text, ::testing::ContainsRegex("step 5/5 .* - 2,400 tokens/s\nEval"));
    EXPECT_THAT(text, ::testing::ContainsRegex("step 5/5 - 5ms/step\n")) << "the evaluation";
  });
  std::ifstream records(folder.path() / "metrics.jsonl");
  std::string first;
  std::getline(records, first);
  EXPECT_THAT(first, HasSubstr("\"tokens_per_second\""));
}

/// What rank 0 of a job prints of a training on the same global batches, without times.
std::string lines_of(int ranks) {
  const test::TempDir folder;
  const std::string path = (folder.path() / "lines").string();
  run_job(ranks, [&](int rank) {
    const std::string text = printed([&](std::FILE* file) {
      Model model = sgd_model();
      model.fit(blobs(20),
                blobs(12),
                {.batch_size = 8 / ranks,
                 .epochs = 2,
                 .callbacks = {ProgBarLogger({.verbose = 2, .out = file})},
                 .data = {.shuffle = false},
                 .log = {.verbose = 0, .freq = 2}});
    });
    if (rank == 0) {
      std::ofstream(path) << text;
    }
  });
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex(" - [0-9]+.?s/step[^\n]*"), "");
}

TEST(ProgressBarOfTraining, PrintsTheFiguresOfAllRanks) {
  const std::string alone = lines_of(1);
  EXPECT_THAT(alone, HasSubstr("acc: "));
  EXPECT_EQ(lines_of(2), alone);
}

/// What waits for each batch.
struct SlowBlobs {
  data::TensorDataset<2> set = blobs(8);
  [[nodiscard]] int64_t size() const { return set.size(); }
  [[nodiscard]] auto get(int64_t index) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return set.get(index);
  }
};

TEST(ProgressBarOfTraining, SaysWhatTheLoaderCost) {
  run_job(1, [](int) {
    const std::string text = printed([&](std::FILE* file) {
      Model model = sgd_model();
      model.fit(SlowBlobs(),
                SlowBlobs(),
                {.batch_size = 4,
                 .callbacks = {ProgBarLogger({.verbose = 3, .out = file})},
                 .log = {.verbose = 0, .freq = 1}});
    });
    int lines = 0;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) {
      const std::size_t at = line.find("avg_reader_cost: ");
      if (at != std::string::npos) {
        ++lines;
        EXPECT_GE(std::stod(line.substr(at + 17)), 0.02) << line;  // four samples of 5 ms
        EXPECT_LE(std::stod(line.substr(at + 17)),
                  std::stod(line.substr(line.find("avg_batch_cost: ") + 16)))
            << line;
      }
    }
    EXPECT_EQ(lines, 4);  // two of training, two of the evaluation
  });
}

TEST(ProgressBarOfTraining, ABarKeepsTheMetricsBetweenTheLines) {
  ::setenv("ARGOSY_PROGRESS", "bar", 1);
  run_job(1, [](int) {
    auto now = std::chrono::steady_clock::time_point();
    const std::string text = printed([&](std::FILE* file) {
      Model model = sgd_model();
      model.fit(blobs(24),
                {.batch_size = 4,
                 .callbacks = {ProgBarLogger(
                     {.verbose = 1,
                      .out = file,
                      .columns = 200,
                      .now = [&] { return now += std::chrono::milliseconds(200); }})},
                 .log = {.verbose = 0, .freq = 2}});
    });
    EXPECT_THAT(text, ::testing::ContainsRegex("step 1/6 .*- loss: [0-9.]+ - ETA"));
    EXPECT_THAT(text, ::testing::ContainsRegex("step 2/6 .*- loss: [0-9.]+ - acc: [0-9.]+ - ETA"));
    EXPECT_THAT(text, ::testing::ContainsRegex("step 3/6 .*- loss: [0-9.]+ - acc: [0-9.]+ - ETA"));
  });
  ::unsetenv("ARGOSY_PROGRESS");
}

TEST(ProgressBarOfTraining, ANarrowTerminalShortensTheBarBeforeTheText) {
  ::setenv("ARGOSY_PROGRESS", "bar", 1);
  run_job(1, [](int) {
    for (const int columns : {76, 66}) {
      auto now = std::chrono::steady_clock::time_point();
      const std::string text = printed([&](std::FILE* file) {
        Model model = sgd_model();
        model.fit(blobs(24),
                  {.batch_size = 4,
                   .callbacks = {ProgBarLogger(
                       {.verbose = 1,
                        .out = file,
                        .columns = columns,
                        .now = [&] { return now += std::chrono::milliseconds(200); }})},
                   .log = {.verbose = 0, .freq = 1}});
      });
      EXPECT_EQ(text.find("step 3/6 [=") != std::string::npos, columns == 76) << text;
      EXPECT_THAT(text, ::testing::ContainsRegex("step 3/6.* - ETA: [0-9]s - [0-9]+ms/step"));
    }
  });
  ::unsetenv("ARGOSY_PROGRESS");
}

TEST(ProgressBarOfTraining, NothingIsWrittenWhereProgressIsOff) {
  for (const auto& [progress, writes] : {std::pair{"off", false}, std::pair{"plain", true}}) {
    ::setenv("ARGOSY_PROGRESS", progress, 1);
    run_job(1, [writes = writes](int) {
      const std::string text = printed([](std::FILE* file) {
        Model model = sgd_model();
        model.fit(blobs(8),
                  blobs(8),
                  {.batch_size = 4,
                   .callbacks = {ProgBarLogger({.out = file})},
                   .log = {.verbose = 2, .freq = 1}});
      });
      EXPECT_EQ(!text.empty(), writes) << text;
    });
  }
  ::unsetenv("ARGOSY_PROGRESS");
}

TEST(EarlyStopping, EndsAfterPatienceAndNotAtAnImprovement) {
  run_job(2, [](int) {
    Model model = sgd_model(small_net(), {.lr = 0});  // learns nothing
    auto stopping =
        std::make_shared<EarlyStopping>(EarlyStoppingOptions{.patience = 2, .verbose = 0});
    const History history =
        model.fit(blobs(8),
                  blobs(8),
                  {.batch_size = 4, .epochs = 9, .callbacks = {stopping}, .log = {.verbose = 0}});
    EXPECT_EQ(history.epochs.size(), 4U);  // the first is the best, three do not improve on it
    EXPECT_EQ(history.ended, Ended::kStopped);
    EXPECT_EQ(stopping->best_epoch(), 0);
    Model learning = sgd_model(small_net(), {.lr = 0.2});
    const History all = learning.fit(blobs(30),
                                     blobs(30),
                                     {.batch_size = 5,
                                      .epochs = 3,
                                      .callbacks = {EarlyStopping({.verbose = 0})},
                                      .log = {.verbose = 0}});
    EXPECT_EQ(all.epochs.size(), 3U);  // with patience 0 improvements go on
  });
}

TEST(EarlyStopping, NamesTheFiguresThatThereAre) {
  run_job(1, [](int) {
    Model model = sgd_model();
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  model.fit(
                      blobs(8),
                      {.batch_size = 4,
                       .callbacks = {EarlyStopping({.monitor = "accuracy"})},
                       .num_iters = 1,
                       .log = {.verbose = 0}});  // which ends before an evaluation looks for it
                }),
                HasSubstr("no figure \"accuracy\" to follow: there are loss, acc"));
    EXPECT_NO_THROW(model.fit(blobs(8),
                              blobs(8),
                              {.batch_size = 4,
                               .callbacks = {EarlyStopping({.monitor = "eval_acc"})},
                               .num_iters = 1,
                               .log = {.verbose = 0}}));
  });
}

/// A user's metric whose name begins like that of an evaluation's figure.
struct Misnamed {
  void update(const at::Tensor& /*output*/, const at::Tensor& /*labels*/) {}
  [[nodiscard]] double compute(const comm::Group& /*group*/) const { return 1; }
  [[nodiscard]] std::vector<std::string> names() const { return {"eval_x"}; }
  void reset() {}
};

TEST(EarlyStopping, FollowsAFigureWhoseNameBeginsAsThoseOfEvaluationsDo) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 0.1}), loss::CrossEntropy(), {Misnamed()});
    const FitOptions options{.batch_size = 4,
                             .callbacks = {EarlyStopping({.monitor = "eval_x"})},
                             .log = {.verbose = 0}};
    EXPECT_NO_THROW(model.fit(blobs(8), options));
    EXPECT_NO_THROW(model.fit(blobs(8), blobs(8), options));
  });
}

TEST(EarlyStopping, GivesBackTheBestWeights) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model = sgd_model(net, {.lr = 0.2});
    struct Spoil : Callback {
      void on_epoch_begin(const Epoch& epoch) override {
        if (epoch.epoch == 2) {
          epoch.model.optimizer().set_lr(50);
        }
      }
    };
    engine::StateDict best;
    struct Keep : Callback {
      engine::StateDict* to;
      explicit Keep(engine::StateDict& into) : to(&into) {}
      void on_epoch_end(const Epoch& epoch) override {
        if (epoch.epoch == 1) {
          *to = engine::state_dict(epoch.model.network()).clone();
        }
      }
    };
    model.fit(blobs(30),
              blobs(30),
              {.batch_size = 5,
               .epochs = 5,
               .callbacks = {Spoil(),
                             Keep(best),
                             EarlyStopping({.restore_best_weights = true, .verbose = 0})},
               .log = {.verbose = 0}});
    for (const auto& [name, tensor] : engine::state_dict(net)) {
      EXPECT_TRUE(torch::equal(tensor, best.at(name))) << name;
    }
  });
}

TEST(ReduceLROnPlateau, ReducesAllGroupsAfterPatience) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model(net);
    model.prepare(optim::SGD(net, {.lr = 1e-3}, {{.names = {"second.*"}, .lr = 1e-4}}),
                  loss::CrossEntropy());
    model.fit(blobs(8),
              {.batch_size = 4,
               .epochs = 4,
               .callbacks = {ReduceLROnPlateau(
                   {.factor = 0.5, .patience = 1, .min_delta = 9, .cooldown = 5, .verbose = 0})},
               .log = {.verbose = 0}});
    EXPECT_DOUBLE_EQ(model.optimizer().param_groups()[0].lr, 0.5e-3);
    EXPECT_DOUBLE_EQ(model.optimizer().param_groups()[1].lr, 0.5e-4);
  });
}

struct Break : Callback {
  void on_before_update(const Step& step) override {
    if (step.step == 2) {
      for (const auto& [name, parameter] : step.model.parameters()) {
        if (name == "second.weight") {
          parameter.grad().flatten()[1] = std::numeric_limits<float>::quiet_NaN();
        }
      }
    }
  }
};

TEST(GradientMonitor, NamesLayerAndStepBeforeTheWeightsAreSpoiled) {
  run_job(1, [](int) {
    const SmallNet net = small_net();
    Model model = sgd_model(net);
    EXPECT_THAT(
        test::error_text<DataError>([&] {
          model.fit(
              blobs(20),
              {.batch_size = 4, .callbacks = {Break(), GradientMonitor()}, .log = {.verbose = 0}});
        }),
        HasSubstr("the gradient of \"second.weight\" is not finite in step 3 (epoch 1, batch "
                  "3): 1 NaN, 0 infinite of 24 elements"));
    EXPECT_TRUE(torch::isfinite(net->second->weight).all().item<bool>());
  });
}

}  // namespace
}  // namespace argosy::train
