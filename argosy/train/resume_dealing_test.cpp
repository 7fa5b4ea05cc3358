// Other ranks take up an epoch: who sees which of its samples.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/train/callbacks/prog_bar_logger.h"
#include "argosy/train/resume_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

namespace fs = std::filesystem;
using testing::adam_model;
using testing::blobs;
using ::testing::HasSubstr;
using testing::options_in;
using testing::run_job;
using testing::Samples;
using testing::SignalAt;
using testing::small_net;
using testing::SmallNet;

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
      options.data.shuffle = true;
      options.resume = Resume::kAuto;
      options.checkpoint.resume_batch = ResumeBatch::kGlobal;
      options.num_iters = updates;
      const History history = adam_model(net).fit(Indexed{.n = 96, .seen = &file}, options);
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

TEST(Resume, UpdatesHaveAsManySamplesAlsoAfterAnEpochThatWasDone) {
  const test::TempDir folder;
  const auto leg = [&](int ranks, int64_t stop, const std::vector<int64_t>& expected) {
    run_job(ranks, [&](int) {
      FitOptions options = options_in(folder.path().string());
      const auto samples = std::make_shared<Samples>();
      options.callbacks = {samples, SignalAt(stop)};
      options.resume = Resume::kAuto;
      options.checkpoint.resume_batch = ResumeBatch::kGlobal;
      const History history = adam_model(small_net()).fit(blobs(48), options);
      EXPECT_EQ(history.steps, std::min<int64_t>(stop, 18));
      EXPECT_EQ(samples->of_updates, expected);
    });
  };
  leg(2, 6, std::vector<int64_t>(6, 8));     // the first epoch's last update
  leg(1, 8, std::vector<int64_t>(2, 8));     // in the second
  leg(1, 100, std::vector<int64_t>(10, 8));  // the rest
}

TEST(Resume, ProgressIsOfEachEpochsOwnBatches) {
  const test::TempDir folder;
  const std::string checkpoints = (folder.path() / "checkpoints").string();
  const std::string said = (folder.path() / "said").string();
  const auto leg = [&](int ranks, int64_t stop) {
    run_job(ranks, [&](int rank) {
      std::FILE* const out = std::fopen(rank == 0 ? said.c_str() : "/dev/null", "w");
      FitOptions options = options_in(checkpoints);
      options.epochs = 2;
      options.resume = Resume::kAuto;
      options.callbacks = {SignalAt(stop), ProgBarLogger({.verbose = 2, .out = out})};
      (void)adam_model(small_net()).fit(blobs(48), options);
      std::fclose(out);
    });
  };
  leg(1, 2);  // of 12 batches
  leg(2, 99);
  std::ostringstream lines;
  lines << std::ifstream(said).rdbuf();
  EXPECT_THAT(lines.str(), HasSubstr("step 5/5"));  // of the 40 samples that were left
  EXPECT_THAT(lines.str(), HasSubstr("step 6/6"));
}

TEST(Resume, ABatchThatCannotBeDividedIsSaid) {
  const test::TempDir folder;
  const std::string checkpoints = (folder.path() / "checkpoints").string();
  const auto run = [&](int ranks, bool fails) {
    run_job(ranks, [&](int) {
      const SmallNet net = small_net();
      FitOptions options = options_in(checkpoints);
      options.resume = Resume::kAuto;
      options.checkpoint.resume_batch = ResumeBatch::kGlobal;
      options.num_iters = 1;
      Model model = adam_model(net);
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
                         .resume = Resume::kAuto,
                         .num_iters = 2,
                         .checkpoint = {.dir = checkpoints},
                         .log = {.verbose = 0}};
      Model model = adam_model(net);
      const auto fit = [&] { (void)model.fit(loader, options); };
      if (fails) {
        options.num_iters.reset();
        EXPECT_THAT(test::error_text<UsageError>(fit), HasSubstr("cannot be dealt anew"));
        options.virtual_ranks = 2;
        EXPECT_THAT(test::error_text<UsageError>(fit),
                    HasSubstr("the checkpoint's training has 2 virtual ranks, and the loader's "
                              "batches are dealt to 1. Call fleet::init({.virtual_ranks = 2})"));
      } else {
        fit();
      }
    });
  };
  run(2, false);
  run(1, true);
}

}  // namespace
}  // namespace argosy::train
