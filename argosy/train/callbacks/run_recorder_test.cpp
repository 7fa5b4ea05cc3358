// What a browser makes of a fit's page: tests/peers/browser.sh.
#include "argosy/train/callbacks/run_recorder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/image/codec.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/sgd.h"
#include "argosy/runs/metrics_log.h"
#include "argosy/runs/run_config.h"
#include "argosy/runs/run_folder.h"
#include "argosy/train/train.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"
#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::blobs;
using ::testing::HasSubstr;
using testing::run_job;
using testing::sgd_model;
using testing::small_net;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct RunRecorderTest : ::testing::Test {
  test::TempDir temp{};
  std::string run = (temp.path() / "blobs").string();

  [[nodiscard]] FitOptions options() const {
    return {.batch_size = 4,
            .epochs = 2,
            .run_dir = run,
            .data = {.seed = 5},
            .log = {.verbose = 0, .freq = 2}};
  }
  [[nodiscard]] runs::MetricsLog figures() const {
    runs::MetricsLog log(run + "/metrics.jsonl");
    log.read();
    return log;
  }
  [[nodiscard]] std::vector<double> steps(const char* split) const {
    std::vector<double> all;
    const runs::MetricsLog log = figures();
    for (const runs::CurvePiece& piece : log.find("loss", split)->curve.pieces()) {
      all.push_back(piece.first_x);
    }
    return all;
  }
};

TEST_F(RunRecorderTest, LeavesAllThatTheRunsPageShows) {
  run_job(2, [&](int) { sgd_model().fit(blobs(32), blobs(12), options()); });
  const runs::RunConfig config = runs::read_run_config(run);
  EXPECT_EQ(config.name, "blobs");
  EXPECT_EQ(config.state, runs::RunState::kFinished);
  EXPECT_TRUE(config.ended.has_value());
  EXPECT_EQ(config.seed, 5U);
  EXPECT_EQ(config.ranks, 2);
  EXPECT_EQ(config.exit_code, 0);
  EXPECT_FALSE(config.versions.at("libtorch").empty());
  EXPECT_EQ(config.options.at("batch_size"), 4);
  EXPECT_EQ(config.options.at("network"), "SmallNet");
  EXPECT_EQ(config.options.at("optimizer").at("name"), "SGD");
  EXPECT_EQ(config.options.at("metrics"), nlohmann::ordered_json{"acc"});
  EXPECT_THAT(steps("train"), ::testing::ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(steps("eval"), ::testing::ElementsAre(4, 8));
  EXPECT_NE(figures().find("acc", "eval"), nullptr);
  EXPECT_NE(figures().find("input_wait", "train"), nullptr);
  const auto ranks = runs::read_rank_files(run);
  ASSERT_EQ(ranks.size(), 2U);
  for (const auto& rank : ranks) {
    EXPECT_GT(rank.at("samples_per_second").get<double>(), 0);  // points are no pictures
    EXPECT_GT(rank.at("comm_wait").get<double>(), 0);
    EXPECT_LE(rank.at("comm_wait").get<double>(), 1);
    EXPECT_GT(rank.at("peak_memory_bytes").get<double>(), 1e6);
  }
  EXPECT_TRUE(fs::exists(run + "/timeline.rank1.json"));
  EXPECT_THAT(text_of(run + "/index.html"),
              AllOf(HasSubstr("badge finished"), HasSubstr("SmallNet")));
  EXPECT_FALSE(fs::exists(run + "/samples"));  // points are no pictures
}

TEST_F(RunRecorderTest, SaysWithWhatItWasTrained) {
  run_job(1,
          [&](int) {
            const testing::SmallNet net = small_net();
            Model model(net);
            const optim::SGD sgd(
                net,
                {.lr = 0.1, .weight_decay = 0.01, .grad_clip = optim::ClipGradByGlobalNorm(2)},
                {{.names = {"*.bias"}, .weight_decay = 0.0}});
            const optim::LinearWarmup warm(optim::StepLR(sgd, {.step_size = 3, .gamma = 0.5}),
                                           {.warmup_steps = 4});
            model.prepare(sgd,
                          loss::CrossEntropy({.label_smoothing = 0.1}),
                          {},
                          {.schedule = optim::per_step(warm),
                           .ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
            FitOptions told = options();
            torch::manual_seed(77);
            told.checkpoint.every_steps = 3;
            told.log.hyperparameters = {{"dropout", "0.3"},
                                        {"api_key", "hunter2"},
                                        {"tracking", "https://me:hunter2@host/"}};
            model.fit(blobs(32), told);
          },
          {.divide_update = false});
  const nlohmann::ordered_json about = runs::read_run_config(run).options;
  EXPECT_EQ(about.at("optimizer").at("lr"), 0.1) << "not the first rate of the warm-up, 0";
  EXPECT_EQ(about.at("optimizer").at("weight_decay"), "0.01");
  EXPECT_EQ(about.at("optimizer").at("grad_clip"), "global norm 2");
  EXPECT_EQ(about.at("optimizer").at("momentum"), "0");
  EXPECT_EQ(about.at("optimizer").at("nesterov"), "false");
  EXPECT_EQ(about.at("loss_parameters"), "label_smoothing=0.1");
  EXPECT_EQ(about.at("ema"), "decay=0.9");
  EXPECT_EQ(about.at("torch_seed"), 77);
  EXPECT_EQ(about.at("checkpoint").at("every_steps"), 3);
  EXPECT_EQ(about.at("checkpoint").at("keep_last"), 3);
  EXPECT_EQ(about.at("strategy"), nlohmann::ordered_json({{"divide_update", false}}));
  EXPECT_EQ(about.at("optimizer").at("groups").at(1).at("weight_decay"), "0");
  EXPECT_EQ(about.at("schedule").at("name"), "LinearWarmup");
  EXPECT_EQ(about.at("schedule").at("parameters"),
            "warmup_steps=4, start_factor=0, then StepLR(step_size=3, gamma=0.5)");
  EXPECT_EQ(about.at("schedule").at("per"), "update");
  EXPECT_EQ(about.at("hyperparameters").at("dropout"), "0.3");
  EXPECT_EQ(about.at("hyperparameters").at("api_key"), "(hidden)");
  EXPECT_THAT(about.dump(), ::testing::Not(HasSubstr("hunter2")));
}

struct Throw : Callback {
  void on_train_batch_end(const Step& step) override {
    if (step.step == 3) {
      throw DataError("test.sample", "a torn record");
    }
  }
};

TEST_F(RunRecorderTest, RanksThatAreNoLongerThereAreNotShown) {
  run_job(3, [&](int) { sgd_model().fit(blobs(32), options()); });
  ASSERT_EQ(runs::read_rank_files(run).size(), 3U);
  run_job(1, [&](int) { sgd_model().fit(blobs(32), options()); });
  EXPECT_EQ(runs::read_rank_files(run).size(), 1U);
  EXPECT_FALSE(fs::exists(run + "/timeline.rank2.json"));
  EXPECT_TRUE(fs::exists(run + "/earlier.rank2.json"));
}

TEST_F(RunRecorderTest, SaysWhyItEnded) {
  run_job(1, [&](int) {
    FitOptions throwing = options();
    throwing.callbacks = {Throw()};
    EXPECT_THROW(sgd_model().fit(blobs(32), throwing), DataError);
    const runs::RunConfig failed = runs::read_run_config(run);
    EXPECT_EQ(failed.state, runs::RunState::kFailed);
    EXPECT_THAT(failed.message, HasSubstr("a torn record"));
    EXPECT_THAT(text_of(run + "/index.html"), HasSubstr("badge failed"));
    FitOptions stopping = options();
    struct Stop : Callback {
      void on_epoch_end(const Epoch& epoch) override { epoch.model.stop_training("enough"); }
    };
    stopping.callbacks = {Stop()};
    sgd_model().fit(blobs(32), stopping);
    EXPECT_EQ(runs::read_run_config(run).state, runs::RunState::kStopped);
    EXPECT_EQ(runs::read_run_config(run).message, "enough");
  });
}

TEST_F(RunRecorderTest, NamesTheCauseOfTheRankThatFailedFirst) {
  run_job(2, [&](int rank) {
    FitOptions failing = options();
    if (rank == 1) {
      failing.callbacks = {Throw()};
    }
    EXPECT_THROW(sgd_model().fit(blobs(32), failing), std::exception);
  });
  EXPECT_THAT(runs::read_run_config(run).message,
              AllOf(HasSubstr("rank 1: "), HasSubstr("a torn record")));
}

/// Looks at the run's files as they are while fit() runs.
struct Peek : Callback {
  std::string run;
  explicit Peek(std::string folder) : run(std::move(folder)) {}
  void on_train_batch_end(const Step& /*step*/) override {
    EXPECT_EQ(runs::read_run_config(run).state, runs::RunState::kRunning);
    EXPECT_TRUE(fs::exists(run + "/index.html"));
  }
};

TEST_F(RunRecorderTest, ATrainingThatGoesOnKeepsItsFiguresAndItsStart) {
  run_job(1, [&](int) {
    Model model = sgd_model();
    FitOptions part = options();
    part.callbacks = {Peek(run)};
    model.fit(blobs(32), blobs(4), part);  // 16 steps
    const auto started = runs::read_run_config(run).started;
    // As a run that was killed leaves it: beyond where the next one begins, and a torn line.
    std::ofstream(run + "/metrics.jsonl", std::ios::app)
        << R"({"step":18,"split":"train","loss":99})"
        << "\n"
        << R"({"step":19,"spl)";
    runs::RunConfig cut = runs::read_run_config(run);
    cut.state = runs::RunState::kRunning;
    runs::write_run_config(run, cut);
    model.fit(blobs(32), blobs(4), part);
    const runs::RunConfig resumed = runs::read_run_config(run);
    EXPECT_EQ(resumed.started, started);
    ASSERT_EQ(resumed.interruptions.size(), 1U);
    EXPECT_EQ(resumed.interruptions[0].state, runs::RunState::kKilled);
    EXPECT_EQ(resumed.interruptions[0].step, 16);
    EXPECT_THAT(text_of(run + "/index.html"), HasSubstr("killed, resumed at step 16 on "));
    EXPECT_THAT(steps("train"),
                ::testing::ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32));
    EXPECT_THAT(text_of(run + "/metrics.jsonl"), ::testing::Not(HasSubstr("\"loss\":99")));
    EXPECT_EQ(figures().bad_lines(), 0);
    model.fit(blobs(32), blobs(4), part);
    EXPECT_EQ(runs::read_run_config(run).interruptions.size(), 1U) << "it had finished";
    sgd_model().fit(blobs(8), part);  // from the beginning
    EXPECT_THAT(steps("train"), ::testing::ElementsAre(2, 4));
    EXPECT_TRUE(fs::exists(run + "/metrics.jsonl.old"));
  });
}

/// Pictures of one channel, of which each class has its own half.
data::TensorDataset<2> halves(int64_t samples, int64_t channels) {
  const at::Tensor labels = torch::arange(samples).remainder(2);
  at::Tensor images = torch::full({samples, channels, 8, 8}, -2.0);
  for (int64_t i = 0; i < samples; ++i) {
    images[i].slice(1, 4 * (i % 2), 4 * (i % 2) + 4).fill_(3.0);
  }
  return data::TensorDataset<2>(images, labels);
}

struct FlatNetImpl : torch::nn::Module {
  explicit FlatNetImpl(int64_t channels) {
    fc = register_module("fc", torch::nn::Linear(64 * channels, 2));
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc->forward(x.flatten(1)); }
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(FlatNet);

TEST_F(RunRecorderTest, ShowsPicturesOfTheEvaluationWithWhatTheNetworkSaid) {
  for (const int64_t channels : {1, 3}) {
    run_job(1, [&](int) {
      const FlatNet net(channels);
      Model model(net);
      model.prepare(optim::SGD(net, {.lr = 0.01}), loss::CrossEntropy());
      model.fit(halves(8, channels), halves(20, channels), options());
      EXPECT_TRUE(fs::exists(run + "/samples/epoch 1.json"));
      const auto sheet = nlohmann::json::parse(text_of(run + "/samples/epoch 2.json"));
      EXPECT_EQ(sheet.size(), 16U);  // of the 20
      EXPECT_THAT(text_of(run + "/index.html"), HasSubstr("data:image/png;base64"));
    });
  }
}

TEST_F(RunRecorderTest, TheUsersOwnTimelineTakesThePlaceOfTheRuns) {
  run_job(1, [&](int) {
    FitOptions own = options();
    own.callbacks = {TimelineLogger({.most_events = 3})};
    sgd_model().fit(blobs(32), own);
    const std::string text = text_of(run + "/timeline.rank0.json");
    EXPECT_EQ(std::ranges::count(text, 'X'), 3);
    EXPECT_FALSE(fs::exists(run + "/earlier.timeline.rank0.json"));
  });
}

TEST_F(RunRecorderTest, AFolderThatCannotBeMadeIsToldAtOnceALaterFailureEndsNothing) {
  std::ofstream(temp.path() / "file") << "in the way";
  run_job(1, [&](int) {
    FitOptions nowhere = options();
    nowhere.run_dir = (temp.path() / "file" / "run").string();
    nowhere.checkpoint.dir = (temp.path() / "checkpoints").string();
    EXPECT_THROW(sgd_model().fit(blobs(8), nowhere), DataError);
    struct Spoil : Callback {
      std::string run;
      explicit Spoil(std::string folder) : run(std::move(folder)) {}
      void on_epoch_begin(const Epoch& epoch) override {
        if (epoch.epoch == 1) {
          fs::remove_all(run);
          std::ofstream(run) << "in the way";
        }
      }
    };
    FitOptions spoiled = options();
    spoiled.callbacks = {Spoil(run)};
    spoiled.checkpoint.dir = nowhere.checkpoint.dir;
    EXPECT_EQ(sgd_model().fit(blobs(8), blobs(4), spoiled).epochs.size(), 2U);
    fs::remove(run);
  });
}

/// What the run's file says when this callback ends.
struct LookAtTheEnd : Callback {
  std::string folder;
  runs::RunState* state;
  LookAtTheEnd(std::string run, runs::RunState& into) : folder(std::move(run)), state(&into) {}
  void on_train_end(const Training& /*training*/) override {
    *state = runs::read_run_config(folder).state;
  }
};

TEST_F(RunRecorderTest, SaysThatAllHasEndedAfterTheOtherCallbacks) {
  run_job(1, [&](int) {
    runs::RunState at_the_end = runs::RunState::kFailed;
    FitOptions told = options();
    told.callbacks = {LookAtTheEnd(run, at_the_end)};
    sgd_model().fit(blobs(8), told);
    EXPECT_EQ(at_the_end, runs::RunState::kRunning);
    EXPECT_EQ(runs::read_run_config(run).state, runs::RunState::kFinished);
  });
}

}  // namespace
}  // namespace argosy::train
