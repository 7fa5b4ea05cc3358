// What a training leaves in its folder, and what comes back from there.
#include "argosy/train/callbacks/model_checkpoint.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/train/resume_test_support.h"

#include "tests/support/error_text.h"

namespace argosy::train {
namespace {

using testing::adam_model;
using testing::blobs;
using testing::hash;
using ::testing::HasSubstr;
using testing::options_in;
using testing::run_job;
using ::testing::SizeIs;
using testing::small_net;
using testing::SmallNet;

TEST(ModelCheckpoint, KeepsTheLastAndTheBest) {
  const test::TempDir folder;
  run_job(1, [&](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    auto keep = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{
        .dir = folder.path().string(), .every_steps = 5, .monitor = "loss", .keep_last = 2});
    (void)adam_model(net).fit(
        set, set, {.batch_size = 8, .epochs = 4, .callbacks = {keep}, .log = {.verbose = 0}});
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
    Model model = adam_model(small_net());
    const std::string mine = (folder.path() / "mine").string();
    model.save(mine);
    FitOptions options = options_in(folder.path().string());
    options.checkpoint.keep_last = 1;
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
    (void)adam_model(net).fit(blobs(48),
                              {.batch_size = 4, .callbacks = {keep}, .log = {.verbose = 0}});
    EXPECT_THAT(checkpoint::list(folder.path().string(), checkpoint::Check::kSizes), SizeIs(6))
        << "six updates; the end of the epoch takes the place of the last one's";
  });
}

TEST(ModelFiles, WeightsAndWholeStatesComeBack) {
  const test::TempDir folder;
  run_job(2, [&](int) {
    const auto set = blobs(50);
    const SmallNet net = small_net();
    Model model = adam_model(net);
    (void)model.fit(set, {.batch_size = 5, .log = {.verbose = 0}});
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
    Model loaded = adam_model(other);
    (void)loaded.load(whole);
    EXPECT_EQ(hash(other), hash(net));
    EXPECT_EQ(loaded.optimizer().lr(), model.optimizer().lr());
    (void)model.fit(set, {.batch_size = 5, .log = {.verbose = 0}});
    (void)loaded.fit(set, {.batch_size = 5, .log = {.verbose = 0}});
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
