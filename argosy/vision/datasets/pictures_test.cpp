// The data sets of pictures: that one pass over a stored picture gives what the chain gives, and
// what the sets make of their files. What the files may hold is tested in formats and samples.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/data/concat.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/subset.h"
#include "argosy/datasets/pack.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/packed_sample.h"
#include "argosy/formats/records.h"
#include "argosy/image/codec.h"
#include "argosy/image/resize.h"
#include "argosy/vision/datasets/sets.h"
#include "argosy/vision/transforms/transforms.h"

namespace argosy::vision {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kData = ARGOSY_TEST_DATA;
const Normalize kNormalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});

/// A step that does nothing, and keeps a chain from being run in one pass.
const auto kPlainly = [](const image::Image& image) { return image; };

/// A folder that goes with the object.
class Scratch final {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "argosy_pictures_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void copy(const std::string& from, const std::string& to) const {
    fs::create_directories((path_ / to).parent_path());
    fs::copy_file(from, path_ / to);
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// Three classes with pictures of several formats and sizes.
class Photos : public testing::Test {
 protected:
  void SetUp() override {
    photos_.copy(kData + "/images/flower_1.jpg", "b/flower_1.jpg");
    photos_.copy(kData + "/images/flower_2.jpg", "a/flower_2.JPG");
    photos_.copy(kData + "/images/flower_3.jpg", "b/more/flower_3.jpg");
    photos_.copy(kData + "/images/gray.jpg", "c/gray.jpg");
    photos_.copy(kData + "/images/rgb24.bmp", "c/rgb24.bmp");
    photos_.copy(kData + "/images/rgba.png", "c/rgba.png");
    photos_.copy(kData + "/images/cmyk.jpg", "c/cmyk.jpg");
  }
  Scratch photos_{};
};

template <typename Set>
std::tuple<at::Tensor, at::Tensor> batch_of(const Set& set,
                                            const std::vector<int64_t>& indices,
                                            int64_t epoch,
                                            at::MemoryFormat format) {
  static data::TensorPool pool;
  data::BatchContext context{.indices = indices, .seed = 5, .epoch = epoch, .pool = &pool};
  context.memory_format = format;
  return set.get_batch(indices, context);
}

std::vector<int64_t> all_of(int64_t size) {
  std::vector<int64_t> indices(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    indices[static_cast<size_t>(i)] = i;
  }
  return indices;
}

/// One pass, as a batch in either memory format and as samples, against the chain step by step.
template <typename Make>
void expect_same_bits(const Make& make, const Compose& chain, int64_t epochs) {
  const auto set = make(chain);
  const std::vector<int64_t> indices = all_of(set.size());
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    const at::Tensor rows =
        std::get<0>(batch_of(set, indices, epoch, at::MemoryFormat::Contiguous));
    const at::Tensor pixels =
        std::get<0>(batch_of(set, indices, epoch, at::MemoryFormat::ChannelsLast));
    EXPECT_TRUE(pixels.is_contiguous(at::MemoryFormat::ChannelsLast));
    for (int64_t i = 0; i < set.size(); ++i) {
      data::Random random(5, epoch, set.sample_key(i));
      data::Random same(5, epoch, set.sample_key(i));
      const at::Tensor wanted = chain(set.picture(i), random);
      EXPECT_TRUE(at::equal(rows[i], wanted))
          << chain.to_string() << ", sample " << i << ", epoch " << epoch << ": differ by "
          << (rows[i] - wanted).abs().max().item<float>();
      EXPECT_TRUE(at::equal(pixels[i], wanted));
      EXPECT_TRUE(at::equal(set.get(i, same).image, wanted));
    }
  }
}

TEST_F(Photos, OnePassGivesTheBitsOfTheChain) {
  const auto make = [&](const Compose& chain) {
    return DatasetFolder(photos_.path(), {.transform = chain});
  };
  for (const Compose& chain :
       {Compose{RandomResizedCrop(300), RandomHorizontalFlip(), ToTensor(), kNormalize},
        Compose{RandomResizedCrop(260, {.interpolation = image::Interpolation::kBicubic}),
                RandomVerticalFlip(),
                ToTensor()},
        Compose{Resize({290, 310}), RandomCrop(132), RandomHorizontalFlip(), kNormalize},
        Compose{Resize({283, 281}, {.interpolation = image::Interpolation::kNearest}),
                RandomCrop(32, {.padding = {4, 4, 4, 4}}),
                ToTensor()}}) {
    expect_same_bits(make, chain, 4);
  }
}

TEST(Cifar, OnePassGivesTheBitsOfTheChain) {
  const auto make = [&](const Compose& chain) {
    return Cifar10(kData + "/cifar10/cifar-10-binary.tar.gz", Split::kTest, {.transform = chain});
  };
  for (const Compose& chain :
       {Compose{RandomCrop(32, {.padding = {4, 4, 4, 4}}),
                RandomHorizontalFlip(),
                ToTensor(),
                kNormalize},
        Compose{Pad(2, {.fill = 7}), RandomHorizontalFlip(1), RandomVerticalFlip(1), ToTensor()},
        Compose{CenterCrop(20), kNormalize},
        Compose{ToTensor()}}) {
    expect_same_bits(make, chain, 3);
  }
}

TEST_F(Photos, ALargeReductionIsMadeWhileDecodingAndStaysNear) {
  const Compose chain{Resize({24, 24}), ToTensor()};
  const DatasetFolder fused(photos_.path(), {.transform = chain});
  const DatasetFolder plain(photos_.path(), {.transform = Compose{kPlainly, chain}});
  for (int64_t i = 0; i < fused.size(); ++i) {
    const at::Tensor difference = (fused.get(i).image - plain.get(i).image).abs();
    EXPECT_LT(difference.mean().item<float>(), 0.02) << i;
    EXPECT_LT(difference.max().item<float>(), 0.3) << i;
  }
}

TEST_F(Photos, WorkersAndResumesChangeNoPixel) {
  const DatasetFolder set(
      photos_.path(),
      {.transform = {RandomResizedCrop(32), RandomHorizontalFlip(), ToTensor(), kNormalize}});
  std::vector<at::Tensor> first;
  for (const int workers : {0, 1, 8}) {
    data::DataLoader loader(set,
                            {.batch_size = 2, .shuffle = true, .num_workers = workers, .seed = 3});
    size_t i = 0;
    for (auto& [images, labels] : loader) {
      if (workers == 0) {
        first.push_back(images.clone());
      } else {
        EXPECT_TRUE(at::equal(images, first.at(i))) << workers << " threads, batch " << i;
      }
      ++i;
    }
    EXPECT_EQ(i, first.size());
  }
}

std::vector<at::Tensor> images_of(const DatasetFolder& set, int workers) {
  data::DataLoader loader(set,
                          {.batch_size = 2, .shuffle = true, .num_workers = workers, .seed = 3});
  std::vector<at::Tensor> all;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& [images, labels] : loader) {
      all.push_back(images);
    }
  }
  return all;
}

TEST_F(Photos, KeptInAnyFormAndUpToAnyLimitTheyGiveTheSamePixels) {
  for (const Compose& chain :
       {Compose{RandomResizedCrop(300), RandomHorizontalFlip(), ToTensor(), kNormalize},
        Compose{kPlainly, RandomResizedCrop(64), ToTensor()}}) {
    const std::vector<at::Tensor> wanted =
        images_of(DatasetFolder(photos_.path(), {.transform = chain}), 0);
    for (const Keep keep : {Keep::kEncoded, Keep::kDecoded}) {
      for (const int64_t limit : {1'000'000LL, 1LL << 30}) {
        for (const int workers : {0, 8}) {
          const DatasetFolder set(
              photos_.path(), {.transform = chain, .cache = {.keep = keep, .max_bytes = limit}});
          const std::vector<at::Tensor> images = images_of(set, workers);
          ASSERT_EQ(images.size(), wanted.size());
          for (size_t i = 0; i < images.size(); ++i) {
            EXPECT_TRUE(at::equal(images[i], wanted[i])) << i << ", limit " << limit;
          }
          const data::CacheStats stats = set.cache_stats();
          EXPECT_LE(stats.bytes, limit);
          EXPECT_EQ(stats.hits + stats.misses, 2 * set.size());
          EXPECT_EQ(stats.full, stats.kept < set.size());
          EXPECT_GT(stats.kept, 0);
        }
      }
    }
  }
}

TEST_F(Photos, NoPixelDependsOnWhichWereKept) {
  const Compose reducing{Resize({24, 24}), ToTensor()};  // which would decode fewer pixels
  const auto images = [&](int64_t limit) {
    const PictureCache cache{.keep = Keep::kDecoded, .max_bytes = limit};
    return images_of(DatasetFolder(photos_.path(), {.transform = reducing, .cache = cache}), 0);
  };
  const std::vector<at::Tensor> all = images(1 << 30);
  const std::vector<at::Tensor> some = images(1'000'000);
  const std::vector<at::Tensor> none = images(1);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(at::equal(all[i], some.at(i)) && at::equal(all[i], none.at(i))) << i;
  }
}

TEST_F(Photos, WhatIsKeptNeedsTheDiskOnce) {
  const Compose chain{Resize({32, 32}), ToTensor()};
  for (const Keep keep : {Keep::kEncoded, Keep::kDecoded}) {
    const Scratch scratch;
    scratch.copy(kData + "/images/flower_1.jpg", "a/1.jpg");
    const DatasetFolder set(scratch.path(), {.transform = chain, .cache = {.keep = keep}});
    const ImageFolder photos(scratch.path(), {.transform = chain, .cache = {.keep = keep}});
    const at::Tensor first = set.get(0).image;
    data::Random random(0, 0, 0);
    (void)photos.get(0, random);
    fs::remove_all(scratch.path() + "/a");
    EXPECT_TRUE(at::equal(set.get(0).image, first));
    EXPECT_TRUE(at::equal(std::get<0>(photos.get(0, random)), first));
    EXPECT_EQ(set.cache_stats().hits, 1);
    const DatasetFolder other(photos_.path(), {.transform = chain});
    EXPECT_EQ(other.cache_stats().misses, 0);
    EXPECT_THROW(DatasetFolder(photos_.path(), {.cache = {.keep = keep, .max_bytes = 0}}),
                 UsageError);
  }
}

TEST_F(Photos, AFileThatWentAwayIsADataErrorWithItsIndex) {
  const DatasetFolder set(photos_.path(), {.transform = {Resize({32, 32}), ToTensor()}});
  fs::remove(photos_.path() + "/b/flower_1.jpg");
  try {
    (void)batch_of(set, {0, 1}, 0, at::MemoryFormat::Contiguous);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("flower_1.jpg"));
    EXPECT_EQ(error.place().index, 1);
  }
}

TEST_F(Photos, ViewsKeepTheFastPathAndThePixels) {
  const DatasetFolder set(
      photos_.path(),
      {.transform = {RandomResizedCrop(32), RandomHorizontalFlip(), ToTensor(), kNormalize}});
  static_assert(data::GetsBatch<data::Subset<DatasetFolder>>);
  static_assert(data::GetsBatch<data::Concat<DatasetFolder, data::Subset<DatasetFolder>>>);
  static_assert(data::GetsBatch<data::Subset<Flowers102>> &&
                data::GetsBatch<data::Subset<Pictures>> &&
                data::GetsBatch<data::Subset<FacialKeypoints>>);
  const auto [whole, labels] = batch_of(set, all_of(set.size()), 2, at::MemoryFormat::ChannelsLast);
  const auto parts = data::random_split(set, {0.5, 0.5}, {.seed = 9});
  for (const auto& part : parts) {
    const auto [images, own] =
        batch_of(part, all_of(part.size()), 2, at::MemoryFormat::ChannelsLast);
    const at::Tensor index = at::tensor(part.indices());
    EXPECT_TRUE(at::equal(images, whole.index_select(0, index)));
    EXPECT_TRUE(at::equal(own, labels.index_select(0, index)));
    EXPECT_TRUE(images.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST_F(Photos, FoldersAreClassesInOrder) {
  const DatasetFolder set(photos_.path(), {});
  EXPECT_THAT(set.classes(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(set.labels(), ElementsAre(0, 1, 1, 2, 2, 2, 2));
  const at::Tensor image = set.get(0).image;
  EXPECT_EQ(image.scalar_type(), at::kFloat);
  EXPECT_EQ(image.size(0), 3);
  EXPECT_EQ(image[1][7][9].item<float>(),
            static_cast<float>(set.picture(0).row<uint8_t>(7)[9 * 3 + 1]) / 255.0F);
  EXPECT_EQ(set.picture(3).order(), image::Order::kRgb);  // gray.jpg
}

TEST_F(Photos, PicturesOfSeveralSizesMakeNoBatch) {
  const DatasetFolder set(photos_.path(), {});
  try {
    (void)batch_of(set, {0, 1}, 0, at::MemoryFormat::Contiguous);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("of the batch's first sample"));
    EXPECT_THAT(error.what(), HasSubstr("RandomResizedCrop(224)"));
    EXPECT_EQ(error.place().index, 1);
  }
}

TEST_F(Photos, ADamagedPictureIsNamedWithItsIndex) {
  std::vector<uint8_t> bytes = image::read_file(photos_.path() + "/a/flower_2.JPG");
  bytes.resize(bytes.size() / 3);
  std::ofstream(photos_.path() + "/a/flower_2.JPG", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  for (const Compose& chain :
       {Compose{Resize({32, 32}), ToTensor()}, Compose{kPlainly, Resize({32, 32}), ToTensor()}}) {
    const DatasetFolder set(photos_.path(), {.transform = chain});
    EXPECT_NO_THROW((void)set.get(1));
    try {
      (void)batch_of(set, {1, 0}, 0, at::MemoryFormat::Contiguous);
      FAIL();
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("flower_2.JPG"));
      EXPECT_EQ(error.place().index, 0);
    }
    EXPECT_NO_THROW((void)set.get(1)) << "the thread's decoder goes on after an error";
  }
}

TEST_F(Photos, WithoutLabelsAllPicturesCount) {
  const ImageFolder set(photos_.path() + "/b", {.transform = {Resize({8, 8}), ToTensor()}});
  EXPECT_EQ(set.size(), 2);
  data::DataLoader loader(set, {.batch_size = 2});
  for (auto& [images] : loader) {
    EXPECT_EQ(images.sizes(), (std::vector<int64_t>{2, 3, 8, 8}));
  }
  EXPECT_THAT(set.path(0), HasSubstr("flower_1.jpg"));
}

TEST(DatasetFolder, ClassesWithoutPicturesAndNoClassesAreErrors) {
  const Scratch scratch;
  fs::create_directories(scratch.path() + "/empty_one");
  fs::create_directories(scratch.path() + "/full");
  fs::copy_file(kData + "/images/gray.jpg", scratch.path() + "/full/gray.jpg");
  try {
    const DatasetFolder set(scratch.path(), {});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("empty_one"));
  }
  EXPECT_THROW(DatasetFolder(scratch.path() + "/full", {}), DataError);
  scratch.copy(kData + "/images/gray.jpg", "splits/train/a/gray.jpg");
  scratch.copy(kData + "/images/gray.jpg", "splits/test/a/gray.jpg");
  try {
    const DatasetFolder both(scratch.path() + "/splits", {});
    FAIL() << "training pictures and test pictures in one set";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/splits/train"));
  }
  EXPECT_THROW(DatasetFolder(scratch.path() + "/nowhere", {}), DataError);
}

TEST(Cifar, BothFormsHoldTheSamePictures) {
  const Cifar10 binary(kData + "/cifar10/cifar-10-binary.tar.gz", Split::kTrain, {});
  EXPECT_EQ(binary.classes().at(3), "cat");
  const auto [images, labels] =
      batch_of(binary, all_of(binary.size()), 0, at::MemoryFormat::Contiguous);
  EXPECT_EQ(images.sizes(), (std::vector<int64_t>{binary.size(), 3, 32, 32}));
  EXPECT_EQ(images.scalar_type(), at::kFloat);
  EXPECT_GE(labels.min().item<int64_t>(), 0);
  EXPECT_LE(labels.max().item<int64_t>(), 9);
  const image::Image picture = binary.picture(5);
  EXPECT_EQ(images[5][2][7][9].item<float>(),
            static_cast<float>(picture.row<uint8_t>(7)[9 * 3 + 2]) / 255.0F);
  EXPECT_EQ(binary.pixels()[5][2][7][9].item<int>(), picture.row<uint8_t>(7)[9 * 3 + 2]);
  EXPECT_THROW(Cifar10(kData + "/cifar10/cifar-10-binary.tar.gz", Split::kValid, {}), UsageError);
  EXPECT_THROW((void)binary.get(binary.size()), UsageError);
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST(Flowers, MissingPicturesAreCountedOrPassedOver) {
  const std::string shared = std::string(ARGOSY_SHARED_DATA) + "/flowers102";
  try {
    const Flowers102 set(shared, Split::kTrain, {});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("7654 of the 8189 samples"));
  }
  const Flowers102 train(shared, Split::kTrain, {.open = {.absent = Absent::kSkip}});
  const Flowers102 paddles(
      shared, Split::kTrain, {.open = {.absent = Absent::kSkip, .splits = FlowersSplits::kPaddle}});
  const Flowers102 test(shared, Split::kTest, {.open = {.absent = Absent::kSkip}});
  const Flowers102 valid(shared, Split::kValid, {.open = {.absent = Absent::kSkip}});
  EXPECT_EQ(train.size() + test.size() + valid.size(), 535);
  EXPECT_EQ(paddles.size(), test.size());
  EXPECT_EQ(train.classes().size(), 102);
  EXPECT_EQ(*std::ranges::min_element(test.labels()), 0);
  EXPECT_EQ(*std::ranges::max_element(test.labels()), 101);
}
#endif

/// CIFAR-10's two splits in one record file.
class PackedCifar : public testing::Test {
 protected:
  void SetUp() override {
    const auto source = datasets::open("cifar10", {.path = kArchive});
    datasets::pack(*source, file_);
  }
  const std::string kArchive = kData + "/cifar10/cifar-10-binary.tar.gz";
  Scratch scratch_{};
  const std::string file_ = scratch_.path() + "/cifar.rec";
};

TEST_F(PackedCifar, ASplitHasTheSamplesOfTheOriginals) {
  const Compose augment{
      RandomCrop(32, {.padding = {4, 4, 4, 4}}), RandomHorizontalFlip(), ToTensor()};
  for (const Split split : {Split::kTrain, Split::kTest}) {
    const Cifar10 original(kArchive, split, {.transform = augment});
    const Pictures packed(file_, split, {.transform = augment});
    ASSERT_EQ(packed.size(), original.size());
    EXPECT_EQ(packed.labels(), original.labels());
    EXPECT_EQ(packed.classes(), original.classes());
    const std::vector<int64_t> all = all_of(packed.size());
    const auto [images, labels] = batch_of(packed, all, 1, at::MemoryFormat::Contiguous);
    EXPECT_EQ(packed.sample_key(0),
              split == Split::kTrain ? 0 : Pictures(file_, Split::kTrain).size());
    const auto [wanted, wanted_labels] = batch_of(original, all, 1, at::MemoryFormat::Contiguous);
    EXPECT_TRUE(at::equal(images, wanted));
    EXPECT_TRUE(at::equal(labels, wanted_labels));
  }
  EXPECT_EQ(Pictures(file_).size(),
            Pictures(file_, Split::kTrain).size() + Pictures(file_, Split::kTest).size());
}

/// As mix-up does.
TEST_F(PackedCifar, AStepMayReadAnotherSample) {
  const Pictures others(file_, Split::kTrain, {.transform = {ToTensor()}});
  const auto blended = [&others](const at::Tensor& image) {
    for (int64_t i = 0; i < others.size(); ++i) {
      (void)others.get(i);
    }
    return image;
  };
  const Pictures set(file_, Split::kTrain, {.transform = {ToTensor(), blended}});
  for (int64_t i = 0; i < set.size(); ++i) {
    EXPECT_TRUE(at::equal(set.get(i).target, others.get(i).target)) << i;
  }
}

TEST_F(PackedCifar, ASplitThatIsNotThereIsNamedWithThoseThatAre) {
  try {
    const Pictures set(file_, Split::kValid);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("there is no split \"valid\" in " + file_ + ", only train, test"));
  }
  datasets::pack(*datasets::open("folder", {.path = kData + "/images"}), file_);
  try {
    const Pictures set(file_, Split::kTrain);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("only samples without splits"));
  }
  EXPECT_THROW(Pictures{file_}, DataError) << "pictures without classes";
}

TEST_F(PackedCifar, GrayIsWhatTheTransformIsGiven) {
  const auto make = [&](const Compose& chain) {
    return Pictures(file_, Split::kTest, {.transform = chain, .order = image::Order::kGray});
  };
  expect_same_bits(make, {RandomHorizontalFlip(), ToTensor(), Normalize(0.5, 0.5)}, 2);
  const Pictures gray = make({ToTensor()});
  EXPECT_EQ(gray.get(0).image.sizes(), (std::vector<int64_t>{1, 32, 32}));
  EXPECT_EQ(gray.picture(0).order(), image::Order::kGray);
  EXPECT_THROW(Pictures(file_, {.order = image::Order::kBgr}), UsageError);
}

TEST_F(PackedCifar, OpeningReadsNoSampleAndADamagedOneIsNamedInItsSplit) {
  const int64_t train = Pictures(file_, Split::kTrain).size();
  const int64_t record = 16 + 32 + 8 + 3072;  // of a picture of 32 x 32 with a label
  const auto size = static_cast<int64_t>(fs::file_size(file_));
  const int64_t first = size - 32 - 8 * datasets::open("records", {.path = file_})->size() -
                        record * datasets::open("records", {.path = file_})->size();
  std::fstream(file_, std::ios::binary | std::ios::in | std::ios::out)
      .seekp(first + (train + 2) * record + 1000)
      .put('!');
  const Pictures set(file_, Split::kTest, {.transform = {ToTensor()}});
  EXPECT_NO_THROW((void)set.get(1));
  try {
    (void)batch_of(set, {1, 2, 3}, 0, at::MemoryFormat::Contiguous);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the record's checksum is wrong"));
    EXPECT_EQ(error.place().index, train + 2) << "its place in the whole set";
  }
  EXPECT_THROW((void)set.labels(), DataError);
  data::DataLoader loader(set, {.batch_size = 4, .on_error = data::OnError::kSkip});
  int64_t samples = 0;
  for (auto& [images, labels] : loader) {
    samples += images.size(0);
  }
  EXPECT_EQ(samples, set.size() - 1);
  EXPECT_EQ(loader.stats().bad.skipped, 1);
}

TEST(Pictures, APictureOfAnotherShapeThanTheFilePromisesIsAnErrorWhereItIs) {
  const Scratch scratch;
  const std::string file = scratch.path() + "/own.rec";
  const auto write = [&](const std::vector<int64_t>& shape) {
    formats::RecordWriter writer(
        file, formats::pack_metadata({.kind = "own", .classes = {"a"}, .shape = shape}));
    const std::vector<std::byte> pixels(12);
    for (const auto& [height, channels] : {std::pair(4, 1), {2, 1}, {4, 3}}) {
      writer.append(
          formats::pack_sample({.kind = formats::PictureKind::kPixels,
                                .height = height,
                                .width = 1,
                                .channels = channels,
                                .labels = {0},
                                .picture = std::span(pixels).first(
                                    static_cast<size_t>(height) * static_cast<size_t>(channels))}));
    }
    writer.finish();
  };
  write({4, 1, 1});
  const Pictures set(file);
  EXPECT_EQ(set.get(0).image.sizes(), (std::vector<int64_t>{1, 4, 1})) << "gray stays gray";
  for (const int64_t wrong : {1, 2}) {
    try {
      (void)set.get(wrong);
      FAIL() << wrong;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("expected 4 x 1 x 1 pixels, as all of the set"));
      EXPECT_EQ(error.place().index, wrong);
    }
  }
  EXPECT_THROW((void)set.pixels(), DataError);
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{4, 1}, {0, 1, 1}, {4, 1, -1}, {40000, 40000, 3}}) {
    write(shape);
    EXPECT_THROW(Pictures{file}, DataError);
  }
}

TEST(Pictures, LabelsOutsideTheClassesAreErrorsWhereTheyAre) {
  const Scratch scratch;
  const std::string file = scratch.path() + "/own.rec";
  formats::RecordWriter writer(file,
                               formats::pack_metadata({.kind = "own", .classes = {"a", "b"}}));
  const std::vector<std::byte> pixel(1);
  for (const std::vector<int64_t>& labels : {std::vector<int64_t>{1}, {2}, {-1}, {}}) {
    writer.append(formats::pack_sample({.kind = formats::PictureKind::kPixels,
                                        .height = 1,
                                        .width = 1,
                                        .channels = 1,
                                        .labels = labels,
                                        .picture = pixel}));
  }
  writer.finish();
  const Pictures set(file);
  EXPECT_EQ(set.get(0).target.item<int64_t>(), 1);
  for (const int64_t wrong : {1, 2, 3}) {
    try {
      (void)set.get(wrong);
      FAIL() << wrong;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("is not one of 2 classes"));
      EXPECT_EQ(error.place().index, wrong);
    }
  }
}

/// Sizes in the header of a packed sample (see formats/packed_sample.h), one of which is a lie.
TEST(Pictures, ForgedSizesOfRecordsAreErrorsInOnePassAndInTheChain) {
  struct Lie {
    size_t at;
    uint64_t number;
    size_t bytes;
  };
  const Scratch scratch;
  const std::string file = scratch.path() + "/forged.rec";
  const std::vector<std::byte> pixels(6 * 8 * 3);
  const std::vector<std::byte> sound = formats::pack_sample({.kind = formats::PictureKind::kPixels,
                                                             .height = 6,
                                                             .width = 8,
                                                             .channels = 3,
                                                             .labels = {1},
                                                             .picture = pixels});
  const std::vector<Lie> lies{
      {1, 1, 1},           {1, 3, 1},           {2, 1, 1},    {2, 4, 1},
      {2, 0, 1},           {4, 0, 4},           {4, 7, 4},    {4, 0xffffffff, 4},
      {8, 0, 4},           {8, 9, 4},           {8, 7, 4},    {8, 0x80000000, 4},
      {12, 2, 4},          {12, 0xffffffff, 4}, {16, 1, 4},   {16, 0x40000000, 4},
      {20, 0xffffffff, 4}, {24, 143, 8},        {24, 145, 8}, {24, ~0ULL, 8}};
  formats::RecordWriter writer(file,
                               formats::pack_metadata({.kind = "own", .classes = {"a", "b"}}));
  writer.append(sound);
  for (const Lie& lie : lies) {
    std::vector<std::byte> record = sound;
    for (size_t i = 0; i < lie.bytes; ++i) {
      record[lie.at + i] = static_cast<std::byte>(lie.number >> (8 * i));
    }
    writer.append(record);
  }
  writer.append(std::span(sound).first(31));
  writer.finish();
  for (const Compose& chain : {Compose{Resize({4, 4}), ToTensor(), kNormalize},
                               Compose{kPlainly, Resize({4, 4}), ToTensor(), kNormalize}}) {
    const Pictures set(file, {.transform = chain});
    EXPECT_EQ(set.get(0).image.sizes(), (std::vector<int64_t>{3, 4, 4}));
    for (int64_t i = 1; i < set.size(); ++i) {
      try {
        (void)batch_of(set, {0, i}, 0, at::MemoryFormat::Contiguous);
        ADD_FAILURE() << "record " << i;
      } catch (const DataError& error) {
        EXPECT_THAT(error.what(), HasSubstr("formats.packed_sample"));
        EXPECT_EQ(error.place().index, i);
      }
    }
  }
}

TEST(FacialKeypoints, AFlipMovesThePointsAndExchangesTheSides) {
  const FacialKeypoints plain(kData + "/keypoints/training.csv.gz", {.transform = {Transpose()}});
  ASSERT_EQ(plain.names().size(), 15);
  EXPECT_EQ(plain.names()[0], "left_eye_center");
  const FacialKeypoints flipped(
      kData + "/keypoints/training.csv.gz",
      {.transform = {RandomHorizontalFlip({.p = 1, .keypoint_pairs = plain.pairs()})}});
  EXPECT_EQ(plain.pairs().size(), 6);  // eyes 3, brows 2, mouth's corners
  data::Random random(0, 0, 2);
  const auto [image, points] = plain.get(2, random);
  const auto [mirrored, moved] = flipped.get(2, random);
  EXPECT_TRUE(at::equal(mirrored, image.flip(2)));
  EXPECT_FLOAT_EQ(moved[0][1].item<float>(),
                  points[1][1].item<float>());  // left is the right one's
  EXPECT_FLOAT_EQ(moved[0][0].item<float>(), 95 - points[1][0].item<float>());
}

/// Batches are the samples of get(), through a view and with any number of threads.
TEST(FacialKeypoints, ABatchIsWhatTheSamplesAre) {
  const std::string file = kData + "/keypoints/training.csv.gz";
  const auto pairs = FacialKeypoints(file).pairs();
  for (const Compose& chain :
       {Compose{},
        Compose{ToTensor()},
        Compose{
            RandomHorizontalFlip({.keypoint_pairs = pairs}), ToTensor(), Normalize(0.5, 0.25)}}) {
    const FacialKeypoints faces(file, {.transform = chain});
    for (const int workers : {0, 1, 8}) {
      const auto parts = data::random_split(faces, {0.8, 0.2}, {.seed = 43});
      data::DataLoader loader(parts[0], {.batch_size = 3, .num_workers = workers, .seed = 7});
      int64_t at = 0;
      for (auto& [images, points] : loader) {
        for (int64_t i = 0; i < images.size(0); ++i, ++at) {
          const int64_t index = parts[0].indices().at(static_cast<size_t>(at));
          data::Random random(7, 0, index);
          const Example face = faces.get(index, random);
          EXPECT_TRUE(at::equal(images[i], face.image));
          EXPECT_TRUE(at::equal(points[i], face.target));
        }
      }
      EXPECT_EQ(at, parts[0].size());
    }
  }
}

TEST(FacialKeypoints, PackedFacesAreThoseOfTheTable) {
  const Scratch scratch;
  const std::string table = scratch.path() + "/training.csv";
  std::ofstream(table) << "eye_x,eye_y,nose_x,nose_y,Image\n"
                          "1,2,3,4,1 2 3 4\n5,,7,8,5 6 7 8\n9,1,,3,9 8 7 6\n1,1,1,1,0 0 0 255\n";
  std::ofstream(scratch.path() + "/test.csv") << "ImageId,Image\n1,4 3 2 1\n";
  const std::string packed = scratch.path() + "/faces.rec";
  datasets::pack(*datasets::open("keypoints", {.path = scratch.path()}), packed);
  for (const Points points : {Points::kDrop, Points::kForwardFill, Points::kKeep}) {
    const FacialKeypoints before(table, {.open = {.points = points}});
    const FacialKeypoints after(packed, {.open = {.points = points}});
    ASSERT_EQ(after.size(), before.size());
    EXPECT_EQ(after.names(), before.names());
    for (int64_t i = 0; i < before.size(); ++i) {
      EXPECT_TRUE(at::allclose(after.at(i).points, before.at(i).points, 0, 0, true)) << i;
      EXPECT_EQ(std::memcmp(after.at(i).image.data(), before.at(i).image.data(), 4), 0) << i;
    }
  }
  std::ofstream(table) << "eye_x,eye_y,Image\n1,,1 2 3 4\n";
  datasets::pack(*datasets::open("keypoints", {.path = table}), packed);
  EXPECT_THROW(FacialKeypoints(packed, {.open = {.points = Points::kForwardFill}}), DataError);
  EXPECT_THROW(FacialKeypoints{packed}, DataError) << "no whole face";
  datasets::pack(*datasets::open("folder", {.path = kData + "/images"}), packed);
  EXPECT_THROW(FacialKeypoints{packed}, DataError) << "no points";
}

TEST(FacialKeypoints, ALoaderMakesBatchesOfBoth) {
  const FacialKeypoints faces(kData + "/keypoints/training.csv.gz", {.transform = {ToTensor()}});
  data::DataLoader loader(faces, {.batch_size = 4, .num_workers = 2});
  for (auto& [images, points] : loader) {
    EXPECT_EQ(images.sizes().slice(1), (std::vector<int64_t>{1, 96, 96}));
    EXPECT_EQ(points.sizes().slice(1), (std::vector<int64_t>{15, 2}));
    EXPECT_LE(images.max().item<float>(), 1.0F);
  }
}

TEST(FacialKeypoints, PointsInSidesArePartsOfThePicture) {
  const std::string file = kData + "/keypoints/training.csv.gz";
  const Compose half{Resize({48, 48}), ToTensor()};
  const FacialKeypoints in_pixels(file, {.transform = half});
  const FacialKeypoints in_sides(file, {.transform = half, .points_in = PointUnit::kSides});
  EXPECT_TRUE(at::equal(in_sides.get(1).target, in_pixels.get(1).target.flatten() / 48));
  const FacialKeypoints whole(file, {.transform = Compose{ToTensor()}});
  // Places are counted from the corner of the picture, half a pixel before the first one's middle.
  EXPECT_TRUE(at::allclose(in_pixels.get(1).target, (whole.get(1).target + 0.5) / 2 - 0.5));
}

/// Two pictures, the first with both classes on it and the second with none.
class TagSource final : public datasets::Source {
 public:
  TagSource()
      : Source({.set = "tags",
                .task = datasets::Task::kTags,
                .path = "tags",
                .classes = {"cat", "dog", "owl"},
                .splits = {{"train", 0, 1}, {"test", 1, 2}},
                .shape = {1, 1, 1}}) {}
  [[nodiscard]] int64_t size() const override { return 3; }
  [[nodiscard]] datasets::Sample get(int64_t index, datasets::Scratch& scratch) const override {
    scratch.bytes.assign(1, static_cast<uint8_t>(51 * index));
    scratch.labels = index == 0   ? std::vector<int64_t>{0, 2}
                     : index == 1 ? std::vector<int64_t>{}
                                  : std::vector<int64_t>{3};
    return {.picture = {.kind = datasets::StoredPicture::Kind::kPixels,
                        .bytes = scratch.bytes,
                        .size = {1, 1},
                        .channels = 1},
            .labels = scratch.labels};
  }
  [[nodiscard]] image::Image decoded(const datasets::Sample& sample,
                                     const datasets::PictureAs& as) const override {
    return datasets::unpacked(sample.picture, as.order);
  }
};

TEST(PictureDataset, SeveralClassesOnAPictureAreOnesAmongZeros) {
  const auto source = std::make_shared<const TagSource>();
  const PictureDataset train(source, "train");
  EXPECT_TRUE(at::equal(train.get(0).target, at::tensor({1.0F, 0.0F, 1.0F})));
  for (const Compose& chain : {Compose{}, Compose{ToTensor()}, Compose{kPlainly, ToTensor()}}) {
    const PictureDataset set(source, "", {.transform = chain});
    const auto [images, targets] = batch_of(set, {1, 0}, 0, at::MemoryFormat::Contiguous);
    EXPECT_TRUE(at::equal(targets, at::tensor({0.0F, 0.0F, 0.0F, 1.0F, 0.0F, 1.0F}).view({2, 3})));
    EXPECT_FLOAT_EQ(images[0].item<float>(), 0.2F);
  }
}

TEST(PictureDataset, AClassThatIsNoneIsNamedWithItsPlace) {
  const PictureDataset test(std::make_shared<const TagSource>(), "test");
  try {
    (void)test.get(1);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("label 3 is not one of 3 classes"));
    EXPECT_EQ(error.place().index, 2);
  }
  EXPECT_THROW((void)test.labels(), UsageError);
}

TEST(PictureDataset, RefusesOptionsThatNoPictureCanHave) {
  const auto source = std::make_shared<const TagSource>();
  EXPECT_THROW(PictureDataset(source, "train", {.label = 1}), UsageError);
  EXPECT_THROW(PictureDataset(source, "train", {.mean = {1, 2}}), UsageError);
  EXPECT_THROW(PictureDataset(source, "train", {.std = {0}}), UsageError);
  EXPECT_THROW(PictureDataset(source, "train", {.transform = {ToTensor()}, .std = {2}}),
               UsageError);
}

TEST(MnistJson, SplitsArePictures) {
  const std::string file = kData + "/mnist/mnist.json.gz";
  const MnistJson train(file, Split::kTrain);
  EXPECT_GT(train.size(), MnistJson(file, Split::kValid).size());
  const auto [image, label] = train.get(0);
  EXPECT_EQ(image.sizes(), (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(label.scalar_type(), at::kLong);
  EXPECT_LE(image.max().item<float>(), 1.0F);
  EXPECT_THROW((void)train.get(train.size()), UsageError);
  EXPECT_GT(MnistJson(kData + "/mnist", Split::kTest).size(), 0) << "the folder will do";
}

}  // namespace
}  // namespace argosy::vision
