#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/metrics/accuracy.h"
#include "argosy/optim/adam.h"
#include "argosy/optim/lr_decay.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/callbacks/early_stopping.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/callbacks/reduce_lr_on_plateau.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

namespace fs = std::filesystem;
using testing::blobs;
using ::testing::HasSubstr;
using testing::run_job;
using ::testing::SizeIs;
using testing::small_net;
using testing::SmallNet;

/// The same training each time: an optimizer with state, a schedule by updates, an average.
Model prepared(const SmallNet& net) {
  optim::Adam optimizer(net, {.lr = 0.05});
  Model model(net);
  model.prepare(optimizer,
                loss::CrossEntropy(),
                {metrics::Accuracy()},
                {.schedule = optim::per_step(optim::CosineAnnealingLR(optimizer, {.t_max = 40})),
                 .ema = optim::ExponentialMovingAverageOptions{.decay = 0.9}});
  return model;
}

std::string hash(const SmallNet& net) {
  return checkpoint::weights_hash(engine::state_dict(net));
}

/// Ends fit() after so many updates.
struct StopAt : Callback {
  int64_t step;
  explicit StopAt(int64_t at) : step(at) {}
  void on_train_batch_begin(const Step& now) override {
    if (now.step + 1 == step) {
      ::raise(SIGUSR1);
    }
  }
};

FitOptions options_in(const std::string& folder) {
  return {.batch_size = 4,
          .epochs = 3,
          .save_dir = folder,
          .verbose = 0,
          .seed = 5,
          .on_signal = OnSignal::kSaveAndReturn};
}

TEST(Resume, GoesOnToTheBitFromAnyUpdateOnAnyRank) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const auto set = blobs(50);
    const SmallNet whole = small_net();
    const History straight =
        prepared(whole).fit(set, set, options_in((folder.path() / "whole").string()));
    for (const int64_t stop : {1, 6, 7, 8, 14, 20, 21}) {  // 7 updates an epoch
      const std::string save_dir = (folder.path() / ("stop" + std::to_string(stop))).string();
      FitOptions options = options_in(save_dir);
      options.accumulate_grad_batches = 1;
      options.callbacks = {StopAt(stop)};
      {
        const SmallNet net = small_net();
        const History cut = prepared(net).fit(set, set, options);
        ASSERT_EQ(cut.ended, Ended::kPreempted);
        ASSERT_EQ(cut.steps, stop);
        EXPECT_THAT(cut.reason, HasSubstr("SIGUSR1"));
      }
      torch::manual_seed(99);
      const SmallNet net;  // other weights: all comes from the checkpoint
      options.callbacks.clear();
      options.resume = Resume::kMust;
      const History rest = prepared(net).fit(set, set, options);
      EXPECT_EQ(hash(net), hash(whole)) << "stopped after update " << stop;
      EXPECT_EQ(rest.steps, straight.steps);
      ASSERT_FALSE(rest.epochs.empty());
      for (std::size_t i = 1; i <= rest.epochs.size(); ++i) {
        const Logs& was = straight.epochs[straight.epochs.size() - i];
        const Logs& is = rest.epochs[rest.epochs.size() - i];
        EXPECT_EQ(was.to_string(), is.to_string());
        EXPECT_EQ(was["loss"], is["loss"]);
        EXPECT_EQ(was["eval_loss"], is["eval_loss"]);
      }
    }
  });
}

/// A signal comes to one rank in the middle of the first evaluation; counts its batches.
struct SignalInEvaluation : Callback {
  int rank;
  int64_t batches = 0;
  explicit SignalInEvaluation(int of) : rank(of) {}
  void on_eval_batch_begin(const EvalStep& now) override {
    ++batches;
    (void)torch::rand({3});  // an evaluation that is made twice must not draw twice
    if (rank == 0 && now.batch == 5) {
      ::raise(SIGTERM);
    }
  }
};

TEST(Resume, ASignalEndsAnEvaluationAndItIsMadeAnew) {
  for (const int ranks : {1, 3}) {
    const test::TempDir folder;
    run_job(ranks, [&](int rank) {
      const auto set = blobs(31);
      const auto eval = blobs(100 * ranks + 1);
      const auto draws = std::make_shared<SignalInEvaluation>(-1);
      FitOptions options = options_in((folder.path() / "whole").string());
      options.eval_batch_size = 2;
      options.callbacks = {draws};
      const SmallNet whole = small_net();
      const History straight = prepared(whole).fit(set, eval, options);
      const double next = torch::rand({1}).item<double>();

      options.save_dir = (folder.path() / "cut").string();
      const auto signal = std::make_shared<SignalInEvaluation>(rank);
      options.callbacks = {signal};
      const SmallNet net = small_net();
      const History cut = prepared(net).fit(set, eval, options);
      ASSERT_EQ(cut.ended, Ended::kPreempted);
      EXPECT_LT(signal->batches, 10);
      EXPECT_THAT(cut.epochs, SizeIs(0));

      options.resume = Resume::kMust;
      options.callbacks = {std::make_shared<SignalInEvaluation>(-1)};
      const SmallNet again;
      const History rest = prepared(again).fit(set, eval, options);
      EXPECT_EQ(torch::rand({1}).item<double>(), next);
      EXPECT_EQ(hash(again), hash(whole)) << ranks << " ranks";
      ASSERT_EQ(rest.epochs.size(), straight.epochs.size());
      for (std::size_t i = 0; i < rest.epochs.size(); ++i) {
        EXPECT_EQ(rest.epochs[i].to_string(), straight.epochs[i].to_string());
        EXPECT_EQ(rest.epochs[i]["eval_loss"], straight.epochs[i]["eval_loss"]);
      }
    });
  }
}

/// A data set whose samples say their index.
struct Indexed {
  int64_t n = 0;
  [[nodiscard]] int64_t size() const { return n; }
  [[nodiscard]] std::tuple<torch::Tensor, torch::Tensor> get(int64_t index) const {
    if (seen != nullptr) {
      std::ofstream(*seen, std::ios::app) << index << "\n";
    }
    return {torch::full({testing::kFeatures}, 0.01F * static_cast<float>(index)),
            torch::tensor(index % testing::kClasses)};
  }
  const std::string* seen = nullptr;
};

std::multiset<int64_t> read_numbers(const fs::path& folder) {
  std::multiset<int64_t> all;
  for (const auto& file : fs::directory_iterator(folder)) {
    std::ifstream in(file.path());
    for (int64_t number = 0; in >> number;) {
      all.insert(number);
    }
  }
  return all;
}

TEST(Resume, AnotherNumberOfRanksSeesEachSampleOfTheEpochOnce) {
  const test::TempDir folder;
  const std::string checkpoints = (folder.path() / "checkpoints").string();
  const fs::path seen = folder.path() / "seen";
  fs::create_directories(seen);
  const auto leg = [&](int ranks, int64_t updates, const char* name) {
    run_job(ranks, [&](int rank) {
      const std::string file = (seen / (name + std::to_string(rank))).string();
      const SmallNet net = small_net();
      FitOptions options = options_in(checkpoints);
      options.batch_size = 4;
      options.epochs = 1;
      options.shuffle = true;
      options.resume = Resume::kAuto;
      options.resume_batch = ResumeBatch::kGlobal;
      options.num_iters = updates;
      const History history = prepared(net).fit(Indexed{.n = 96, .seen = &file}, options);
      EXPECT_EQ(history.steps, std::min<int64_t>(updates, 8));
    });
  };
  leg(3, 2, "a");    // 24 samples
  leg(2, 5, "b");    // 36
  leg(1, 6, "c");    // 12
  leg(4, 100, "d");  // the rest
  std::multiset<int64_t> expected;
  for (int64_t i = 0; i < 96; ++i) {
    expected.insert(i);
  }
  EXPECT_EQ(read_numbers(seen), expected);
}

/// Samples of each update.
struct Samples : Callback {
  std::vector<int64_t> of_updates{};
  void on_train_batch_end(const Step& step) override {
    if (step.updates) {
      of_updates.push_back(step.samples);
    }
  }
};

TEST(Resume, UpdatesHaveAsManySamplesAlsoAfterAnEpochThatWasDone) {
  const test::TempDir folder;
  const auto leg = [&](int ranks, int64_t stop, const std::vector<int64_t>& expected) {
    run_job(ranks, [&](int) {
      FitOptions options = options_in(folder.path().string());
      const auto samples = std::make_shared<Samples>();
      options.callbacks = {samples, StopAt(stop)};
      options.resume = Resume::kAuto;
      options.resume_batch = ResumeBatch::kGlobal;
      const History history = prepared(small_net()).fit(blobs(48), options);
      EXPECT_EQ(history.steps, std::min<int64_t>(stop, 18));
      EXPECT_EQ(samples->of_updates, expected);
    });
  };
  leg(2, 6, std::vector<int64_t>(6, 8));     // the first epoch's last update
  leg(1, 8, std::vector<int64_t>(2, 8));     // in the second
  leg(1, 100, std::vector<int64_t>(10, 8));  // the rest
}

TEST(Resume, ABatchThatCannotBeDividedIsSaid) {
  const test::TempDir folder;
  const std::string checkpoints = (folder.path() / "checkpoints").string();
  const auto run = [&](int ranks, bool fails) {
    run_job(ranks, [&](int) {
      const SmallNet net = small_net();
      FitOptions options = options_in(checkpoints);
      options.resume = Resume::kAuto;
      options.resume_batch = ResumeBatch::kGlobal;
      options.num_iters = 1;
      Model model = prepared(net);
      const auto fit = [&] { (void)model.fit(blobs(48), options); };
      if (fails) {
        EXPECT_THAT(test::error_text<UsageError>(fit), HasSubstr("a batch of 4 samples"));
      } else {
        fit();
      }
    });
  };
  run(1, false);
  run(3, true);
}

TEST(Resume, ALoaderOfOnesOwnCannotBeDealtAnew) {
  const test::TempDir folder;
  const std::string checkpoints = (folder.path() / "checkpoints").string();
  const auto run = [&](int ranks, bool fails) {
    run_job(ranks, [&](int) {
      const auto set = blobs(48);
      data::DataLoader loader(set, fleet::distributed_batch_sampler(48, {.batch_size = 4}));
      const SmallNet net = small_net();
      FitOptions options{.epochs = 2,
                         .save_dir = checkpoints,
                         .verbose = 0,
                         .num_iters = 2,
                         .resume = Resume::kAuto};
      Model model = prepared(net);
      const auto fit = [&] { (void)model.fit(loader, options); };
      if (fails) {
        options.num_iters.reset();
        EXPECT_THAT(test::error_text<UsageError>(fit), HasSubstr("cannot be dealt anew"));
      } else {
        fit();
      }
    });
  };
  run(2, false);
  run(1, true);
}

TEST(Resume, ATrainingThatWasStoppedStaysStopped) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.epochs = 20;
    options.resume = Resume::kAuto;
    options.callbacks = {EarlyStopping({.monitor = "loss", .min_delta = 100, .verbose = 0})};
    const SmallNet net = small_net();
    const History first = prepared(net).fit(set, set, options);
    ASSERT_EQ(first.ended, Ended::kStopped);
    const SmallNet other;
    const History again = prepared(other).fit(set, set, options);
    EXPECT_EQ(again.ended, Ended::kStopped);
    EXPECT_EQ(again.reason, first.reason);
    EXPECT_THAT(again.epochs, SizeIs(0));
    EXPECT_EQ(hash(other), hash(net));
  });
}

/// Somebody ends the training with the epoch, and a signal comes at the same time.
struct StopAndSignal : Callback {
  void on_epoch_end(const Epoch& epoch) override {
    epoch.model.stop_training("enough");
    ::raise(SIGTERM);
  }
};

TEST(Resume, ATrainingThatWasStoppedWhenASignalCameStaysStopped) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.callbacks = {StopAndSignal()};
    const SmallNet net = small_net();
    const History cut = prepared(net).fit(set, options);
    ASSERT_EQ(cut.ended, Ended::kPreempted);
    ASSERT_EQ(cut.steps, 13);
    options.resume = Resume::kMust;
    options.callbacks.clear();
    const SmallNet other;
    const History again = prepared(other).fit(set, options);
    EXPECT_EQ(again.ended, Ended::kStopped);
    EXPECT_EQ(again.reason, "enough");
    EXPECT_EQ(again.steps, 13) << "not an epoch more";
    EXPECT_EQ(hash(other), hash(net));
  });
}

TEST(Resume, TheBestWeightsOfEarlyStoppingAreKept) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const auto train_in = [&](const char* name, std::optional<int64_t> stop) {
      FitOptions options = options_in((folder.path() / name).string());
      options.epochs = 20;
      options.resume = Resume::kAuto;
      options.callbacks = {EarlyStopping({.monitor = "loss",
                                          .patience = 1,
                                          .min_delta = 100,
                                          .restore_best_weights = true,
                                          .verbose = 0})};
      if (stop.has_value()) {
        options.callbacks.emplace_back(StopAt(*stop));
      }
      const SmallNet net = small_net();
      (void)prepared(net).fit(set, set, options);
      return hash(net);
    };
    const std::string whole = train_in("whole", std::nullopt);
    (void)train_in("parts", 20);  // the best epoch, the first, lies behind
    EXPECT_EQ(train_in("parts", std::nullopt), whole);
  });
}

TEST(Fit, NumItersCountsTheUpdatesOfThisTraining) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    Model model = prepared(small_net());
    (void)model.fit(set, {.batch_size = 5, .verbose = 0, .num_iters = 7});
    EXPECT_EQ(model.fit(set, {.batch_size = 5, .verbose = 0, .num_iters = 3}).steps, 10);
    FitOptions options = options_in(folder.path().string());
    options.resume = Resume::kAuto;
    options.num_iters = 4;
    EXPECT_EQ(model.fit(set, options).steps, 14);
    options.num_iters = 6;
    EXPECT_EQ(model.fit(set, options).steps, 16) << "goes on, and makes two more";
  });
}

TEST(Resume, MoreEpochsGoOnWhereTheLastEnded) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet whole = small_net();
    (void)prepared(whole).fit(set, options_in((folder.path() / "whole").string()));
    FitOptions options = options_in((folder.path() / "parts").string());
    options.resume = Resume::kAuto;
    options.epochs = 1;
    (void)prepared(small_net()).fit(set, options);
    options.epochs = 3;
    const SmallNet net = small_net();
    const History rest = prepared(net).fit(set, options);
    EXPECT_THAT(rest.epochs, SizeIs(2));
    EXPECT_EQ(hash(net), hash(whole));
  });
}

TEST(Resume, APlateauGoesOnCounting) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const auto train = [&](const SmallNet& net, const char* name, int64_t epochs) {
      FitOptions options = options_in((folder.path() / name).string());
      options.epochs = epochs;
      options.resume = Resume::kAuto;
      options.callbacks = {ReduceLROnPlateau(
          {.factor = 0.5, .patience = 2, .min_delta = 1000, .cooldown = 1, .verbose = 0})};
      optim::Adam optimizer(net, {.lr = 0.05});
      Model model(net);
      model.prepare(optimizer, loss::CrossEntropy());
      (void)model.fit(set, options);
      return optimizer.lr();
    };
    const SmallNet whole = small_net();
    const double expected = train(whole, "whole", 9);
    ASSERT_LT(expected, 0.05);
    (void)train(small_net(), "parts", 3);
    (void)train(small_net(), "parts", 5);
    const SmallNet net;
    EXPECT_EQ(train(net, "parts", 9), expected);
    EXPECT_EQ(hash(net), hash(whole));
  });
}

TEST(Resume, WhatSaveHasPutBesideTheCheckpointsIsNoPlaceToGoOnFrom) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.epochs = 1;
    Model model = prepared(small_net());
    (void)model.fit(set, options);
    model.save((folder.path() / "final").string());
    options.resume = Resume::kMust;
    options.epochs = 2;
    EXPECT_EQ(prepared(small_net()).fit(set, options).steps, 26);
    options.resume_from = (folder.path() / "final").string();
    EXPECT_THAT(
        test::error_text<CheckpointError>([&] { (void)prepared(small_net()).fit(set, options); }),
        HasSubstr("Model::save() wrote it"));
  });
}

TEST(Resume, PassesOverTornAndDamagedOnes) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet whole = small_net();
    FitOptions options = options_in(folder.path().string());
    options.keep_last = 0;
    (void)prepared(whole).fit(set, options);
    const std::vector<checkpoint::Inspected> all =
        checkpoint::list(folder.path().string(), checkpoint::Check::kSizes);
    ASSERT_THAT(all, SizeIs(3));
    fs::remove(fs::path(all[0].path) / "model.safetensors");
    std::fstream state(fs::path(all[1].path) / "state.json", std::ios::in | std::ios::out);
    state.seekp(5);
    state.put('#');
    state.close();
    options.resume = Resume::kMust;
    const SmallNet net;
    const History rest = prepared(net).fit(set, options);
    EXPECT_THAT(rest.epochs, SizeIs(2));
    EXPECT_EQ(hash(net), hash(whole));
  });
}

TEST(Resume, AnEarlierTrainingInTheFolderIsSetAsideAndNotTakenForTheNewest) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    (void)prepared(small_net()).fit(set, options);  // 21 updates
    const SmallNet net = small_net();
    options.epochs = 1;
    options.seed = 6;
    (void)prepared(net).fit(set, options);
    const auto newest = checkpoint::find_newest(folder.path().string());
    ASSERT_TRUE(newest.path.has_value());
    EXPECT_THAT(*newest.path, HasSubstr("step-000000007"));
    EXPECT_THAT(
        checkpoint::list((folder.path() / "earlier-1").string(), checkpoint::Check::kChecksums),
        SizeIs(3));
    options.resume = Resume::kMust;
    const SmallNet again;
    EXPECT_EQ(prepared(again).fit(set, options).steps, 7);
    EXPECT_EQ(hash(again), hash(net));
  });
}

TEST(Resume, ADamagedNewerOneDoesNotPushOutTheGoodOnes) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.keep_last = 2;
    (void)prepared(small_net()).fit(set, options);
    const auto all = checkpoint::list(folder.path().string(), checkpoint::Check::kSizes);
    std::fstream state(fs::path(all[0].path) / "state.json", std::ios::in | std::ios::out);
    state.seekp(5);
    state.put('#');
    state.close();
    options.resume = Resume::kMust;
    options.num_iters = 1;  // nothing is left to do: no good one takes the damaged one's place
    options.keep_last = 1;
    (void)prepared(small_net()).fit(set, options);
    EXPECT_TRUE(checkpoint::find_newest(folder.path().string()).path.has_value());
    EXPECT_FALSE(fs::exists(all[0].path));
  });
}

TEST(Resume, AnotherBatchSizeAndAccumulationAreTakenUpAtOnce) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(48);
    for (const bool in_epoch : {false, true}) {
      FitOptions options = options_in((folder.path() / (in_epoch ? "in" : "end")).string());
      options.resume = Resume::kAuto;
      options.epochs = 1;
      options.accumulate_grad_batches = 3;
      if (in_epoch) {
        options.num_iters = 1;
      }
      (void)prepared(small_net()).fit(set, options);
      auto samples = std::make_shared<Samples>();
      options.num_iters.reset();
      options.accumulate_grad_batches = 2;
      if (!in_epoch) {
        options.epochs = 2;
        options.batch_size = 8;
      }
      options.callbacks = {samples};
      (void)prepared(small_net()).fit(set, options);
      EXPECT_THAT(samples->of_updates,
                  ::testing::ElementsAreArray(in_epoch ? std::vector<int64_t>{8, 8, 8, 8, 4}
                                                       : std::vector<int64_t>{16, 16, 16}));
    }
  });
}

TEST(Resume, WhatIsMissingIsSaid) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    Model model = prepared(net);
    EXPECT_THAT(test::error_text<UsageError>(
                    [&] { (void)model.fit(set, {.verbose = 0, .resume = Resume::kAuto}); }),
                HasSubstr("set run_dir, save_dir or resume_from"));
    FitOptions options = options_in(folder.path().string());
    options.resume = Resume::kMust;
    EXPECT_THAT(test::error_text<CheckpointError>([&] { (void)model.fit(set, options); }),
                HasSubstr("no whole checkpoint to resume from"));
    options.resume = Resume::kAuto;
    options.epochs = 1;
    (void)model.fit(set, options);
    Model other(torch::nn::Linear(testing::kFeatures, testing::kClasses));
    other.prepare(optim::SGD(engine::NamedTensors(other.parameters()), {.lr = 0.1}),
                  loss::CrossEntropy());
    EXPECT_THAT(test::error_text<CheckpointError>([&] { (void)other.fit(set, options); }),
                HasSubstr("first.weight"));
  });
}

TEST(ModelCheckpoint, KeepsTheLastAndTheBest) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    auto keep = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{
        .dir = folder.path().string(), .every_steps = 5, .monitor = "loss", .keep_last = 2});
    (void)prepared(net).fit(
        set, set, {.batch_size = 8, .epochs = 4, .verbose = 0, .callbacks = {keep}});
    ASSERT_TRUE(keep->best().has_value());
    EXPECT_TRUE(checkpoint::is_checkpoint(*keep->best()));
    EXPECT_THAT(*keep->last(), HasSubstr("step-000000028"));
    const auto all = checkpoint::list(folder.path().string(), checkpoint::Check::kChecksums);
    EXPECT_LE(all.size(), 3U);
    EXPECT_GE(all.size(), 2U);
    SmallNet best;
    Model model(best);
    (void)model.load(*keep->best());
    EXPECT_GT(keep->times().saves, 5);
  });
}

TEST(ModelCheckpoint, LeavesWhatWasSavedUnderANameAlone) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    Model model = prepared(small_net());
    const std::string mine = (folder.path() / "mine").string();
    model.save(mine);
    FitOptions options = options_in(folder.path().string());
    options.keep_last = 1;
    (void)model.fit(set, options);
    EXPECT_TRUE(checkpoint::is_checkpoint(mine));
    EXPECT_THAT(checkpoint::list(folder.path().string(), checkpoint::Check::kSizes), SizeIs(2));
  });
}

TEST(ModelCheckpoint, ByRank0sClock) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const SmallNet net = small_net();
    auto keep = std::make_shared<ModelCheckpoint>(
        ModelCheckpointOptions{.dir = folder.path().string(),
                               .every_epochs = 0,
                               .every = std::chrono::duration<double>(1e-9),
                               .keep_last = 0});
    (void)prepared(net).fit(blobs(48), {.batch_size = 4, .verbose = 0, .callbacks = {keep}});
    EXPECT_THAT(checkpoint::list(folder.path().string(), checkpoint::Check::kSizes), SizeIs(6))
        << "six updates; the end of the epoch takes the place of the last one's";
  });
}

TEST(ModelFiles, WeightsAndWholeStatesComeBack) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    Model model = prepared(net);
    (void)model.fit(set, {.batch_size = 5, .verbose = 0});
    const Logs judged = model.evaluate(set, {.verbose = 0});
    for (const char* name : {"w.pt", "w.safetensors"}) {
      const std::string path = (folder.path() / name).string();
      model.save(path);
      const SmallNet other;
      Model loaded(other);
      loaded.prepare(loss::CrossEntropy(), {metrics::Accuracy()});
      EXPECT_EQ(loaded.load(path).loaded.size(), 4U);
      EXPECT_EQ(loaded.evaluate(set, {.verbose = 0})["loss"], judged["loss"]) << name;
    }
    const std::string whole = (folder.path() / "state").string();
    model.save(whole);
    const SmallNet other;
    Model loaded = prepared(other);
    (void)loaded.load(whole);
    EXPECT_EQ(hash(other), hash(net));
    EXPECT_EQ(loaded.optimizer().lr(), model.optimizer().lr());
    (void)model.fit(set, {.batch_size = 5, .verbose = 0});
    (void)loaded.fit(set, {.batch_size = 5, .verbose = 0});
    EXPECT_EQ(hash(other), hash(net));
    EXPECT_THAT(test::error_text<UsageError>([&] { model.save("x.onnx"); }),
                HasSubstr(".safetensors"));
    EXPECT_THAT(test::error_text<CheckpointError>(
                    [&] { model.save((folder.path() / "no" / "such" / "w.pt").string()); }),
                HasSubstr("w.pt"));
  });
}

}  // namespace
}  // namespace argosy::train
