// What TensorBoard and VisualDL read: tests/peers/boards.sh.
#include "argosy/train/callbacks/boards.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/metrics/accuracy.h"
#include "argosy/optim/sgd.h"
#include "argosy/train/model.h"
#include "argosy/train/train_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

namespace fs = std::filesystem;
using testing::blobs;
using ::testing::HasSubstr;
using testing::run_job;
using testing::sgd_model;

int64_t files_in(const fs::path& folder) {
  return fs::exists(folder)
             ? std::distance(fs::directory_iterator(folder), fs::directory_iterator())
             : 0;
}

TEST(Boards, TheFirstRankAloneWrites) {
  const test::TempDir folder;
  run_job(2, [&](int rank) {
    const fs::path own = folder.path() / std::to_string(rank);
    sgd_model().fit(blobs(16),
                    {.batch_size = 4,
                     .callbacks = {TensorBoard((own / "a").string()),
                                   VisualDL((own / "b").string(), {.histogram_freq = 1})},
                     .log = {.verbose = 0}});
    EXPECT_EQ(files_in(own / "a"), rank == 0 ? 1 : 0);
    EXPECT_EQ(files_in(own / "b"), rank == 0 ? 1 : 0);
  });
}

TEST(Boards, LieInTheRunsFolderWhereNothingElseIsSaid) {
  const test::TempDir folder;
  const std::string run = (folder.path() / "run").string();
  run_job(1, [&](int) {
    const FitOptions options{.batch_size = 4,
                             .run_dir = run,
                             .callbacks = {TensorBoard(), VisualDL()},
                             .log = {.verbose = 0}};
    sgd_model().fit(blobs(8), options);
    EXPECT_EQ(files_in(run + "/tensorboard"), 1);
    EXPECT_EQ(files_in(run + "/visualdl"), 1);
    FitOptions nowhere = options;
    nowhere.run_dir.clear();
    EXPECT_THAT(test::error_text<UsageError>([&] { sgd_model().fit(blobs(8), nowhere); }),
                HasSubstr("[train.TensorBoard] no folder, and fit() has no run_dir either"));
    EXPECT_THAT(test::error_text<UsageError>([] { VisualDL("x", {.histogram_freq = -1}); }),
                HasSubstr("[train.VisualDL] log_freq and histogram_freq must not be negative, got "
                          "0 and -1"));
  });
}

}  // namespace
}  // namespace argosy::train
