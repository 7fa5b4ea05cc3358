// Which checkpoint of a folder a training goes on from, and what is said where there is none.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/folder_lock.h"
#include "argosy/train/resume_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

namespace fs = std::filesystem;
using testing::adam_model;
using testing::blobs;
using testing::hash;
using ::testing::HasSubstr;
using testing::options_in;
using testing::run_job;
using testing::SignalAt;
using ::testing::SizeIs;
using testing::small_net;
using testing::SmallNet;

TEST(Resume, SaysThatSamplesAreDealtAnewToAnotherNumberOfVirtualRanks) {
  const test::TempDir folder;
  FitOptions options = options_in(folder.path().string());
  options.epochs = 1;
  run_job(2, [&](int) { (void)adam_model(small_net()).fit(blobs(50), options); });
  options.epochs = 2;
  options.resume = Resume::kMust;
  for (const int ranks : {2, 1}) {
    run_job(ranks, [&](int rank) {
      ::testing::internal::CaptureStderr();
      options.virtual_ranks = ranks;
      (void)adam_model(small_net()).fit(blobs(50), options);
      const bool warned = ::testing::internal::GetCapturedStderr().find(
                              "the training had 2 virtual ranks, and goes on with 1: its samples "
                              "are dealt anew") != std::string::npos;
      EXPECT_EQ(warned, ranks == 1) << rank;
    });
    options.epochs = 3;
  }
}

TEST(Resume, WhatSaveHasPutBesideTheCheckpointsIsNoPlaceToGoOnFrom) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.epochs = 1;
    Model model = adam_model(small_net());
    (void)model.fit(set, options);
    model.save((folder.path() / "final").string());
    options.resume = Resume::kMust;
    options.epochs = 2;
    EXPECT_EQ(adam_model(small_net()).fit(set, options).steps, 26);
    options.checkpoint.resume_from = (folder.path() / "final").string();
    EXPECT_THAT(
        test::error_text<CheckpointError>([&] { (void)adam_model(small_net()).fit(set, options); }),
        HasSubstr("Model::save() wrote it"));
  });
}

TEST(Resume, PassesOverTornAndDamagedOnes) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet whole = small_net();
    FitOptions options = options_in(folder.path().string());
    options.checkpoint.keep_last = 0;
    (void)adam_model(whole).fit(set, options);
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
    const History rest = adam_model(net).fit(set, options);
    EXPECT_THAT(rest.epochs, SizeIs(2));
    EXPECT_EQ(hash(net), hash(whole));
  });
}

TEST(Resume, AnEarlierTrainingInTheFolderIsSetAsideAndNotTakenForTheNewest) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    (void)adam_model(small_net()).fit(set, options);  // 21 updates
    const SmallNet net = small_net();
    options.epochs = 1;
    options.data.seed = 6;
    (void)adam_model(net).fit(set, options);
    const auto newest = checkpoint::find_newest(folder.path().string());
    ASSERT_TRUE(newest.path.has_value());
    EXPECT_THAT(*newest.path, HasSubstr("step-000000007"));
    EXPECT_THAT(
        checkpoint::list((folder.path() / "earlier-1").string(), checkpoint::Check::kChecksums),
        SizeIs(3));
    options.resume = Resume::kMust;
    const SmallNet again;
    EXPECT_EQ(adam_model(again).fit(set, options).steps, 7);
    EXPECT_EQ(hash(again), hash(net));
  });
}

TEST(Resume, ADamagedNewerOneDoesNotPushOutTheGoodOnes) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    FitOptions options = options_in(folder.path().string());
    options.checkpoint.keep_last = 2;
    (void)adam_model(small_net()).fit(set, options);
    const auto all = checkpoint::list(folder.path().string(), checkpoint::Check::kSizes);
    std::fstream state(fs::path(all[0].path) / "state.json", std::ios::in | std::ios::out);
    state.seekp(5);
    state.put('#');
    state.close();
    options.resume = Resume::kMust;
    options.num_iters = 1;  // nothing is left to do: no good one takes the damaged one's place
    options.checkpoint.keep_last = 1;
    (void)adam_model(small_net()).fit(set, options);
    EXPECT_TRUE(checkpoint::find_newest(folder.path().string()).path.has_value());
    EXPECT_FALSE(fs::exists(all[0].path));
  });
}

TEST(Resume, ATrainingThatBeganFromAnothersCheckpointGoesOnFromItsOwn) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);  // 13 updates an epoch
    FitOptions first = options_in((folder.path() / "first").string());
    first.epochs = 1;
    (void)adam_model(small_net()).fit(set, first);
    FitOptions options = options_in((folder.path() / "second").string());
    options.checkpoint.resume_from = first.checkpoint.dir;
    const auto fit = [&](Resume resume, int64_t stop) {
      options.resume = resume;
      options.callbacks = {SignalAt(stop)};
      const SmallNet net = small_net();
      const History history = adam_model(net).fit(set, options);
      EXPECT_EQ(history.steps, std::min<int64_t>(stop, 39));
      return std::pair(hash(net), history.epochs.size());
    };
    const auto whole = fit(Resume::kNever, 99);
    EXPECT_EQ(whole.second, 2);
    EXPECT_EQ(fit(Resume::kNever, 15).second, 0) << "once more from the first one's";
    EXPECT_EQ(fit(Resume::kAuto, 30).second, 1);
    const auto rest = fit(Resume::kAuto, 99);
    EXPECT_EQ(rest.first, whole.first);
    EXPECT_EQ(rest.second, 1) << "from step 30, and not from 13";
    options.checkpoint.resume_from = first.checkpoint.dir + "/step-000000013";
    EXPECT_EQ(fit(Resume::kAuto, 20).second, 0) << "another beginning is another training";
  });
}

bool has(const char* file, std::string_view words) {
  std::ifstream stream(file);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  return text.find(words) != std::string::npos;
}

TEST(Fit, OneThatGoesOnWaitsForTheEndOfTheProcessBeforeIt) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    FitOptions options = options_in((folder.path() / "run").string());
    options.epochs = 1;
    EXPECT_EQ(adam_model(small_net()).fit(blobs(20), options).steps, 5);
    const int before = ::open(options.checkpoint.dir.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_EQ(::flock(before, LOCK_EX | LOCK_NB), 0);
    ::testing::internal::CaptureStderr();
    EXPECT_THAT(
        test::error_text<DataError>([&] { (void)adam_model(small_net()).fit(blobs(20), options); }),
        HasSubstr(fmt::format("another training runs in this folder: process {} (", ::getpid())));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::Not(HasSubstr("waiting")));
    ::testing::internal::CaptureStderr();
    std::jthread ending([&](const std::stop_token& stop) {
      while (!has("/proc/self/fd/2", "waiting for its end") && !stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ::close(before);
    });
    options.resume = Resume::kAuto;
    options.epochs = 2;
    EXPECT_EQ(adam_model(small_net()).fit(blobs(20), options).steps, 10);
    (void)::testing::internal::GetCapturedStderr();
  });
}

TEST(Fit, AllRanksHearWhatKeepsRank0FromItsFolders) {
  run_job(2, [](int rank) {
    const auto take = []() -> std::vector<os::UniqueFd> { throw std::bad_alloc(); };
    EXPECT_EQ(test::error_text<std::exception>(
                  [&] { const detail::FolderLock lock(fleet::group(), take); }),
              rank == 0 ? "std::bad_alloc"
                        : "[train.fit] rank 0 could not hold the run's folders: std::bad_alloc");
    fleet::barrier_worker();  // the group is whole
  });
}

TEST(Fit, TwoTrainingsInOneFolderAreAnError) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    struct Second : Callback {
      FitOptions options;
      explicit Second(FitOptions of) : options(std::move(of)) {}
      void on_train_batch_end(const Step& step) override {
        if (step.step == 2) {
          EXPECT_THAT(test::error_text<DataError>(
                          [&] { (void)adam_model(small_net()).fit(blobs(8), options); }),
                      HasSubstr("another training runs in this folder"));
        }
      }
    };
    FitOptions options = options_in(folder.path().string());
    options.epochs = 1;
    for (const bool same_run : {true, false}) {  // or only its checkpoints
      options.run_dir = (folder.path() / "run").string();
      FitOptions other = options;
      (same_run ? other.checkpoint.dir : other.run_dir) = (folder.path() / "other").string();
      options.callbacks = {Second(other)};
      EXPECT_EQ(adam_model(small_net()).fit(blobs(20), options).steps, 5);
      options.callbacks.clear();
    }
    EXPECT_EQ(adam_model(small_net()).fit(blobs(20), options).steps, 5) << "its end lets go";
    options.checkpoint.dir = "/proc/argosy";
    EXPECT_THAT(
        test::error_text<DataError>([&] { (void)adam_model(small_net()).fit(blobs(20), options); }),
        HasSubstr("/proc/argosy: cannot create the folder"));
  });
}

TEST(Resume, WhatIsMissingIsSaid) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    Model model = adam_model(net);
    EXPECT_THAT(test::error_text<UsageError>([&] {
                  (void)model.fit(set, {.resume = Resume::kAuto, .log = {.verbose = 0}});
                }),
                HasSubstr("set run_dir, checkpoint.dir or checkpoint.resume_from"));
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
    other = Model(small_net());
    other.prepare(optim::Adam(engine::NamedTensors(other.parameters()), {.lr = 0.1}),
                  loss::CrossEntropy(),
                  {metrics::Accuracy()});
    EXPECT_THAT(test::error_text<CheckpointError>([&] { (void)other.fit(set, options); }),
                HasSubstr("has a schedule (CosineAnnealingLR), this one has none"));
  });
}

}  // namespace
}  // namespace argosy::train
