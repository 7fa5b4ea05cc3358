#include "argosy/recipes/data.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/recipes/pictures.h"
#include "argosy/recipes/recipes_test_support.h"

#include "tests/support/temp_dir.h"

namespace argosy::recipes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class OfFolders : public ::testing::Test {
 protected:
  test::TempDir folder_;
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] static std::unique_ptr<DataSet> open(const std::string& text) {
    return open_data(parse_data(text));
  }
};

std::vector<std::string> names(const DataSet& data, const std::string& split) {
  const Examples examples =
      data.examples(split, {vision::AnyTransform([](image::Image i) { return i; })}, 1);
  std::vector<std::string> all;
  for (int64_t i = 0; i < examples.size(); ++i) {
    all.push_back(examples.dataset().name(examples.indices()[i]));
  }
  return all;
}

TEST_F(OfFolders, ASetWithoutSplitsHoldsOutTheSameShareAlways) {
  testing::write_classes(path("plain"), 10);
  const auto data = open("folder:" + path("plain"));
  EXPECT_THAT(data->splits(), ElementsAre("train", "valid"));
  EXPECT_EQ(data->size("train"), 24);
  EXPECT_EQ(data->size("valid"), 6);
  EXPECT_THAT(data->classes(), ElementsAre("a", "b", "c"));
  const auto valid = names(*data, "valid");
  EXPECT_EQ(valid, names(*open("folder:" + path("plain")), "valid"));
  for (const std::string& name : names(*data, "train")) {
    EXPECT_EQ(std::ranges::count(valid, name), 0) << name;
  }
  const auto all = open("folder:" + path("plain") + ",holdout=0");
  EXPECT_EQ(all->size("train"), 30);
  EXPECT_EQ(all->evaluation_split(), "");
}

TEST_F(OfFolders, FoldersOfSplitsAreSplits) {
  testing::write_classes(folder_.path() / "train", 4);
  testing::write_classes(folder_.path() / "val", 2, 100);
  const auto data = open("folder:" + folder_.path().string());
  EXPECT_THAT(data->splits(), ElementsAre("train", "valid"));
  EXPECT_EQ(data->size("train"), 12);
  EXPECT_EQ(data->size("valid"), 6);
  for (const std::string& name : names(*data, "valid")) {
    EXPECT_THAT(name, HasSubstr("/val/"));
  }
  const Examples valid =
      data->examples("valid", {vision::AnyTransform([](image::Image i) { return i; })}, 1);
  EXPECT_EQ(valid.dataset().labels()[valid.indices()[0]], 0);
  EXPECT_EQ(valid.dataset().labels()[valid.indices()[5]], 2);
  std::filesystem::rename(folder_.path() / "val" / "c", folder_.path() / "val" / "d");
  EXPECT_THAT([&] { static_cast<void>(open("folder:" + folder_.path().string())); },
              ThrowsMessage<DataError>(HasSubstr("its classes are a, b, d")));
}

TEST_F(OfFolders, ANameAloneIsWhatFetchBrought) {
  ASSERT_EQ(::setenv("ARGOSY_DATA_HOME", path("home").c_str(), 1), 0);
  EXPECT_THAT([&] { static_cast<void>(open("mnist_json")); },
              ThrowsMessage<DataError>(HasSubstr("mnist_json is not there. No server has it")));
  EXPECT_THAT([&] { static_cast<void>(open("cifar10")); },
              ThrowsMessage<DataError>(HasSubstr(path("home/cifar10") +
                                                 ": cifar10 is not there. To bring it: argosy "
                                                 "data fetch cifar10")));
  testing::write_idx(path("home/mnist"), 6);
  EXPECT_EQ(open("mnist")->size("train"), 6);
  EXPECT_EQ(open("mnist,limit=2")->size("train"), 2);
  EXPECT_EQ(parse_data("mnist,limit=2").to_string(), "mnist,limit=2") << "wherever that is later";
  EXPECT_THAT([&] { static_cast<void>(open("mnist,limits=2")); },
              ThrowsMessage<UsageError>(HasSubstr("mnist has no option \"limits\": nearest is")));
  EXPECT_THAT([&] { static_cast<void>(open("mnist,2")); },
              ThrowsMessage<UsageError>(HasSubstr("\"mnist,2\": expected mnist:PATH or mnist,")));
  ASSERT_EQ(::unsetenv("ARGOSY_DATA_HOME"), 0);
}

TEST_F(OfFolders, ALimitKeepsAllClasses) {
  testing::write_classes(path("plain"), 10);
  const auto data = open("folder:" + path("plain") + ",limit=6,holdout=0");
  const Examples examples =
      data->examples("train", {vision::AnyTransform([](image::Image i) { return i; })}, 1);
  std::set<int64_t> labels;
  for (int64_t i = 0; i < examples.size(); ++i) {
    labels.insert(examples.dataset().labels()[examples.indices()[i]]);
  }
  EXPECT_EQ(examples.size(), 6);
  EXPECT_EQ(labels.size(), 3);
}

TEST_F(OfFolders, APathMayHoldCommasAndIsRecognisedByItsFiles) {
  testing::write_classes(path("a,b=c"), 3);
  const DataSpec spec = parse_data(path("a,b=c") + ",limit=3,holdout=0");
  EXPECT_EQ(spec.entry->row.name, "folder");
  EXPECT_EQ(spec.path, path("a,b=c"));
  EXPECT_EQ(open_data(spec)->size("train"), 3);
  EXPECT_EQ(open_data(parse_data(spec.to_string()))->size("train"), 3);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  const std::string name = parse_data("a,b=c,limit=3").path;
  std::filesystem::current_path(before);
  EXPECT_EQ(name, "a,b=c");
}

TEST_F(OfFolders, SaysWhatIsWrong) {
  EXPECT_THAT([&] { static_cast<void>(parse_data("cifar11:/x")); },
              ThrowsMessage<UsageError>(HasSubstr("nearest is cifar10")));
  EXPECT_THROW(static_cast<void>(parse_data("cifar10:")), UsageError);
  EXPECT_EQ(parse_data("cifar10:limit=3").to_string(), "cifar10,limit=3") << "wherever that is";
  testing::write_classes(path("plain"), 3);
  const auto data = open("folder:" + path("plain"));
  EXPECT_THAT(
      [&] { static_cast<void>(data->size("test")); },
      ThrowsMessage<UsageError>(HasSubstr("there is no split \"test\", only train, valid")));
  for (const char* option :
       {",limit=-1", ",holdout=1", ",holdout=-0.1", ",limit=x", ",cache=all"}) {
    EXPECT_THROW(static_cast<void>(open("folder:" + path("plain") + option)), UsageError) << option;
  }
  EXPECT_THAT([&] { static_cast<void>(open("folder:" + path("plain") + ",limt=5,holdout=0")); },
              ThrowsMessage<UsageError>(HasSubstr("has no option \"limt\": nearest is limit")));
  EXPECT_THAT([&] { static_cast<void>(open("folder:" + path("absent") + ",limt=5")); },
              ThrowsMessage<Error>(HasSubstr("absent,limt=5")));
}

TEST_F(OfFolders, ModelAndDataAgreeOnSizeChannelsAndConstants) {
  testing::write_classes(path("plain"), 5);
  const auto lenet = assemble_pictures(
      {.model = "lenet", .data = "folder:" + path("plain") + ",mean=0.5,std=0.25"});
  EXPECT_EQ(lenet->shape.side, 28);
  EXPECT_EQ(lenet->shape.channels, 1);
  EXPECT_EQ(lenet->sizes.outputs, 3);
  data::DataLoader loader(lenet->training("flip,erase"), {.batch_size = 4});
  for (auto& [images, labels] : loader) {
    EXPECT_THAT(images.sizes(), ElementsAre(4, 1, 28, 28));
    EXPECT_GT(images.max().item<double>(), 1);
    EXPECT_LT(labels.max().item<int64_t>(), 3);
    break;
  }
  const auto resnet =
      assemble_pictures({.model = "resnet18", .data = "folder:" + path("plain"), .image_size = 48});
  EXPECT_EQ(resnet->shape.side, 48);
  EXPECT_EQ(resnet->shape.channels, 3);
  EXPECT_THAT(resnet->shape.mean, ElementsAre(0.485, 0.456, 0.406));
  EXPECT_THROW(static_cast<void>(assemble(
                   {.model = "lenet", .data = "folder:" + path("plain"), .image_size = 32})),
               UsageError);
}

TEST(Chains, DefaultAugmentationFitsTheStoredPictures) {
  const PictureShape small{.side = 32, .stored = 32, .mean = {0.5}, .std = {0.5}};
  EXPECT_EQ(training_chain("crop,flip", small).to_string(),
            "Compose(RandomCrop(32, padding=4), RandomHorizontalFlip(), ToTensor(), "
            "Normalize(0.5, 0.5))");
  const PictureShape photos{.side = 224, .stored = 0, .mean = {0}, .std = {1}};
  EXPECT_THAT(training_chain("resized_crop,flip", photos).to_string(),
              HasSubstr("Compose(RandomResizedCrop(224"));
  EXPECT_EQ(evaluation_chain(photos).to_string(),
            "Compose(Resize(256), CenterCrop(224), ToTensor())");
  EXPECT_EQ(training_chain("none", photos).to_string(), evaluation_chain(photos).to_string());
  EXPECT_THAT(training_chain("crop,flip", photos).to_string(),
              HasSubstr("Resize(256), RandomCrop(224"));
  EXPECT_THROW(static_cast<void>(training_chain("crop,resized_crop", small)), UsageError);
  EXPECT_THROW(static_cast<void>(training_chain("flip,none", small)), UsageError);
}

TEST(Chains, EveryTransformRunsByItself) {
  const PictureShape shape{.side = 24, .stored = 28, .channels = 3, .mean = {0.5}, .std = {0.5}};
  for (const AugmentEntry& entry : augmentations()) {
    const vision::Compose chain = training_chain(entry.row.name, shape);
    image::Image picture({.height = 28, .width = 28}, image::Order::kRgb);
    for (int y = 0; y < 28; ++y) {
      std::fill_n(picture.row<uint8_t>(y), 28 * 3, uint8_t{120});
    }
    data::Random random(1, 2, 3);
    EXPECT_THAT(chain(std::move(picture), random).sizes(), ElementsAre(3, 24, 24))
        << entry.row.name;
  }
}

}  // namespace
}  // namespace argosy::recipes
