#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/pack.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/survey.h"
#include "argosy/formats/packed_sample.h"
#include "argosy/formats/records.h"
#include "argosy/image/codec.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::datasets {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
namespace fs = std::filesystem;

const fs::path kData = ARGOSY_TEST_DATA;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string be32(uint32_t v) {
  return {static_cast<char>(v >> 24),
          static_cast<char>(v >> 16),
          static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

/// `count` images of 2 × 3 pixels: 0, 1, 2, …; labels as given.
void write_idx(const fs::path& folder,
               const std::string& split,
               int count,
               const std::string& labels) {
  std::string pixels;
  for (int i = 0; i < count * 6; ++i) {
    pixels += static_cast<char>(i);
  }
  write(folder / (split + "-images-idx3-ubyte"),
        std::string("\0\0\x08\x03", 4) + be32(count) + be32(2) + be32(3) + pixels);
  write(folder / (split + "-labels-idx1-ubyte"),
        std::string("\0\0\x08\x01", 4) + be32(labels.size()) + labels);
}

image::Image gray(uint8_t value, int side = 4) {
  image::Image picture({.height = side, .width = side}, image::Order::kGray);
  std::fill_n(picture.row<uint8_t>(0), picture.total_bytes(), value);
  return picture;
}

void write_png(const fs::path& path, const image::Image& picture) {
  fs::create_directories(path.parent_path());
  image::write_file(path.string(), image::encode_png(picture));
}

class SourcesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return folder_.path().string(); }
  [[nodiscard]] std::string record_file() const { return (folder_.path() / "out.rec").string(); }
  test::TempDir folder_{};
};

TEST_F(SourcesTest, IdxGivesSplitsLabelsAndPixels) {
  write_idx(folder_.path(), "train", 3, std::string("\x09\x00\x01", 3));
  write_idx(folder_.path(), "t10k", 1, "\x02");
  EXPECT_EQ(recognise(path()), "mnist");
  const auto source = open("mnist", {.path = path()});
  EXPECT_EQ(source->size(), 4);
  ASSERT_THAT(source->about().splits, SizeIs(2));
  EXPECT_EQ(source->about().splits[1].name, "test");
  EXPECT_EQ(source->about().splits[1].first, 3);
  Scratch scratch;
  const Sample second = source->get(1, scratch);
  EXPECT_THAT(second.labels, ElementsAre(0));
  EXPECT_EQ(source->label(3), 2);
  const image::Image picture = source->decoded(second);
  EXPECT_EQ(picture.size(), (image::Size{.height = 2, .width = 3}));
  EXPECT_EQ(picture.row<uint8_t>(1)[2], 11);
  EXPECT_THROW((void)source->get(4, scratch), UsageError);
}

TEST_F(SourcesTest, IdxImagesWithoutPixelsOrOfAbsurdSidesAreRefused) {
  for (const auto& [count, height, width] :
       {std::array<uint32_t, 3>{2, 0, 28}, {0, 0xffffffff, 0xffffffff}}) {
    write(folder_.path() / "train-images-idx3-ubyte",
          std::string("\0\0\x08\x03", 4) + be32(count) + be32(height) + be32(width));
    write(folder_.path() / "train-labels-idx1-ubyte",
          std::string("\0\0\x08\x01", 4) + be32(count) + std::string(count, '\0'));
    EXPECT_THAT(test::error_text<DataError>([&] { (void)open("mnist", {.path = path()}); }),
                HasSubstr("train-images-idx3-ubyte: expected images of 1 to 65535 pixels a side"));
  }
}

TEST_F(SourcesTest, IdxThatDoesNotFitTogetherIsRefused) {
  write_idx(folder_.path(), "train", 3, std::string(2, '\0'));
  const auto text = [&] {
    return test::error_text<DataError>([&] { (void)open("mnist", {.path = path()}); });
  };
  EXPECT_THAT(text(), HasSubstr("[datasets.idx] " + path()));
  EXPECT_THAT(text(), HasSubstr("has 2 labels for 3 images"));
  write_idx(folder_.path(), "train", 3, std::string("\x01\x0a\x02", 3));
  EXPECT_THAT(text(), HasSubstr("expected labels 0 to 9, got 10 (sample 1)"));
  fs::copy(folder_.path() / "train-images-idx3-ubyte",
           folder_.path() / "train-labels-idx1-ubyte",
           fs::copy_options::overwrite_existing);
  EXPECT_THAT(text(), HasSubstr("expected bytes in 1 dimension, got 3 dimensions"));
  fs::remove(folder_.path() / "train-labels-idx1-ubyte");
  EXPECT_THAT(text(),
              HasSubstr("expected train-labels-idx1-ubyte.gz or train-labels-idx1-ubyte or"));
  fs::remove(folder_.path() / "train-images-idx3-ubyte");
  EXPECT_THAT(text(), HasSubstr("in it, which are not there"));
}

TEST_F(SourcesTest, AFolderOfFoldersHasClassesAndOneOfPicturesHasNone) {
  write_png(folder_.path() / "cat/1.png", gray(10));
  write_png(folder_.path() / "dog/1.png", gray(20));
  write_png(folder_.path() / "dog/2.png", gray(30));
  EXPECT_EQ(recognise(path()), "folder");
  const auto pets = open("folder", {.path = path()});
  EXPECT_THAT(pets->about().classes, ElementsAre("cat", "dog"));
  Scratch scratch;
  EXPECT_EQ(pets->picture(2).row<uint8_t>(0)[0], 30);
  EXPECT_EQ(pets->label(2), 1);
  const auto dogs = open("folder", {.path = path() + "/dog"});
  EXPECT_EQ(dogs->size(), 2);
  EXPECT_EQ(dogs->label(0), -1);
  EXPECT_THAT(survey(*dogs).per_class, IsEmpty());
}

TEST_F(SourcesTest, FoldersOfSplitsAreSplits) {
  write_png(folder_.path() / "val/cat/1.png", gray(10));
  write_png(folder_.path() / "val/dog/1.png", gray(20));
  write_png(folder_.path() / "train/cat/1.png", gray(30));
  write_png(folder_.path() / "train/dog/1.png", gray(40));
  write_png(folder_.path() / "train/dog/2.png", gray(50));
  write_png(folder_.path() / "drafts/1.png", gray(60));
  const auto pets = open("folder", {.path = path()});
  EXPECT_THAT(pets->about().classes, ElementsAre("cat", "dog"));
  ASSERT_THAT(pets->about().splits, SizeIs(2));
  EXPECT_EQ(pets->about().splits[0].name, "train");
  EXPECT_EQ(pets->about().splits[0].count, 3);
  EXPECT_EQ(pets->about().splits[1].name, "valid");
  EXPECT_EQ(pets->about().splits[1].first, 3);
  EXPECT_EQ(pets->size(), 5);
  Scratch scratch;
  EXPECT_EQ(pets->picture(4).row<uint8_t>(0)[0], 20);
  EXPECT_EQ(pets->label(4), 1);
  write_png(folder_.path() / "test/cow/1.png", gray(10));
  EXPECT_THAT(test::error_text<DataError>([&] { (void)open("folder", {.path = path()}); }),
              AllOf(HasSubstr("[datasets.folder] " + path() + "/test: its classes are cow"),
                    HasSubstr(path() + "/train are cat, dog")));
}

TEST_F(SourcesTest, AFolderOfPicturesThatIsNamedTrainIsAClass) {
  write_png(folder_.path() / "bus/1.png", gray(10));
  write_png(folder_.path() / "train/1.png", gray(20));
  const auto vehicles = open("folder", {.path = path()});
  EXPECT_THAT(vehicles->about().classes, ElementsAre("bus", "train"));
  EXPECT_THAT(vehicles->about().splits, IsEmpty());
}

TEST_F(SourcesTest, FilesAndFoldersAreOneSourceInTheirOrder) {
  write_png(folder_.path() / "some/b/1.png", gray(10));
  write_png(folder_.path() / "some/2.png", gray(20));
  write_png(folder_.path() / "alone.png", gray(30));
  const auto all = open_files({path() + "/alone.png", path() + "/some"});
  ASSERT_EQ(all->size(), 3);
  Scratch scratch;
  EXPECT_EQ(all->picture(0).row<uint8_t>(0)[0], 30);
  EXPECT_EQ(all->label(1), -1);
  EXPECT_THAT(test::error_text<DataError>([&] { (void)open_files({path() + "/nowhere"}); }),
              HasSubstr(path() + "/nowhere: no such file or folder"));
}

TEST_F(SourcesTest, FoldersWithoutAPictureAreAnError) {
  fs::create_directories(folder_.path() / "cat");
  write(folder_.path() / "dog/notes.txt", "no picture");
  EXPECT_THAT(
      test::error_text<DataError>([&] { (void)open("folder", {.path = path()}); }),
      HasSubstr("[datasets.folder] " + path() + ": 2 of 2 classes have no image: cat, dog"));
  EXPECT_THAT(test::error_text<DataError>(
                  [&] { (void)open("folder", {.path = path(), .absent = Absent::kSkip}); }),
              HasSubstr("[datasets.folder] " + path() + ": no picture in its 2 class folders"));
  write_png(folder_.path() / "cat/1.png", gray(10));
  EXPECT_THAT(test::error_text<DataError>([&] { (void)open("folder", {.path = path()}); }),
              AllOf(HasSubstr("1 of 2 classes have no image: dog"), HasSubstr("missing=skip")));
  const auto rest = open("folder", {.path = path(), .absent = Absent::kSkip});
  EXPECT_THAT(survey(*rest).per_class, ElementsAre(1, 0));
}

TEST_F(SourcesTest, TheFiguresAreTheSamplesOwn) {
  write_png(folder_.path() / "a/1.png", gray(0));
  write_png(folder_.path() / "a/2.png", gray(255));
  write_png(folder_.path() / "b/1.png", gray(255, 8));
  write(folder_.path() / "b/torn.png", "\x89PNG\r\n\x1a\n and no more");
  for (const int threads : {1, 3}) {
    const Survey found =
        survey(*open("folder", {.path = path()}), {.pictures = 0, .threads = threads});
    EXPECT_EQ(found.samples, 4);
    EXPECT_THAT(found.per_class, ElementsAre(2, 2));
    EXPECT_EQ(found.height.least, 4);
    EXPECT_EQ(found.height.most, 8);
    EXPECT_THAT(found.channels, ElementsAre(1));
    EXPECT_EQ(found.pictures, 3);
    EXPECT_EQ(found.pixels.most, 255);
    ASSERT_THAT(found.figures, SizeIs(1));
    EXPECT_NEAR(found.figures[0].mean, 80.0 / 96, 1e-12);
    EXPECT_NEAR(found.figures[0].deviation, std::sqrt(80.0 / 96 * 16 / 96), 1e-12);
    EXPECT_EQ(found.damaged, 1);
    EXPECT_THAT(found.first_damage, AllOf(HasSubstr("torn.png"), HasSubstr("(sample 3)")));
  }
}

TEST_F(SourcesTest, AsManyPicturesAreDecodedAsAskedFor) {
  write_idx(folder_.path(), "train", 30, std::string(30, '\1'));
  const auto source = open("mnist", {.path = path()});
  for (const int64_t pictures : {1, 7, 29, 30}) {
    EXPECT_EQ(survey(*source, {.pictures = pictures}).pictures, pictures);
  }
  EXPECT_EQ(survey(*source, {.pictures = 1000}).pictures, 30);
}

TEST_F(SourcesTest, APackedSetGivesTheSameSamples) {
  write_idx(folder_.path(), "train", 3, std::string("\x09\x00\x01", 3));
  write_idx(folder_.path(), "t10k", 1, "\x02");
  const auto source = open("mnist", {.path = path()});
  const Packed all = pack(*source, record_file());
  EXPECT_EQ(all.samples, 4);
  EXPECT_EQ(all.bytes, static_cast<int64_t>(fs::file_size(record_file())));
  EXPECT_EQ(recognise(record_file()), "records");
  const auto records = open("records", {.path = record_file()});
  EXPECT_EQ(records->about().classes, source->about().classes);
  Scratch one;
  Scratch other;
  for (int64_t i = 0; i < 4; ++i) {
    const Sample before = source->get(i, one);
    const Sample after = records->get(i, other);
    EXPECT_TRUE(std::ranges::equal(before.labels, after.labels));
    EXPECT_TRUE(std::ranges::equal(before.picture.bytes, after.picture.bytes));
    EXPECT_EQ(before.picture.size, after.picture.size);
  }
  EXPECT_EQ(pack(*source, record_file(), {.split = "test"}).samples, 1);
  EXPECT_EQ(open("records", {.path = record_file()})->label(0), 2);
  EXPECT_EQ(open("records", {.path = record_file()})->about().splits.at(0).name, "test");
  EXPECT_THAT(
      test::error_text<UsageError>([&] { pack(*source, record_file(), {.split = "valid"}); }),
      HasSubstr("[datasets.split] there is no split \"valid\" in " + path() +
                ", only train, test"));
}

TEST_F(SourcesTest, APackedSetKeepsItsSplits) {
  write_idx(folder_.path(), "train", 3, std::string("\x09\x00\x01", 3));
  write_idx(folder_.path(), "t10k", 1, "\x02");
  pack(*open("mnist", {.path = path()}), record_file());
  const auto records = open("records", {.path = record_file()});
  ASSERT_THAT(records->about().splits, SizeIs(2));
  const SplitRange test = find_split(*records, "test");
  EXPECT_EQ(test.first, 3);
  EXPECT_EQ(test.count, 1);
  EXPECT_EQ(records->label(test.first), 2);
  // Packed once more, all or one of them, they are what they were.
  const std::string again = path() + "/again.rec";
  pack(*records, again);
  EXPECT_EQ(find_split(*open("records", {.path = again}), "train").count, 3);
  pack(*records, again, {.split = "train"});
  EXPECT_THAT(open("records", {.path = again})->about().splits, SizeIs(1));
  EXPECT_EQ(open("records", {.path = again})->size(), 3);
  EXPECT_EQ(open("records", {.path = again})->about().packed_from, "mnist");
  EXPECT_EQ(open("records", {.path = again})->about().shape,
            open("mnist", {.path = path()})->about().shape);
}

TEST_F(SourcesTest, ASetWithoutSplitsIsPackedWithoutAny) {
  write_png(folder_.path() / "pictures/a/1.png", gray(1));
  pack(*open("folder", {.path = path() + "/pictures"}), record_file());
  EXPECT_THAT(open("records", {.path = record_file()})->about().splits, IsEmpty());
}

TEST_F(SourcesTest, SplitsThatAreNotTheWholeRecordFileAreAnError) {
  for (const int64_t samples : {1, 3}) {
    formats::RecordWriter writer(record_file(),
                                 formats::pack_metadata({.splits = {{"train", samples}}}));
    const std::vector<std::byte> picture(4);
    writer.append(formats::pack_sample({.picture = picture}));
    writer.append(formats::pack_sample({.picture = picture}));
    writer.finish();
    EXPECT_THAT(
        test::error_text<DataError>([&] { (void)open("records", {.path = record_file()}); }),
        AllOf(HasSubstr("[datasets.records] " + record_file()),
              HasSubstr("its splits have " + std::to_string(samples) +
                        " samples together, and there are 2 records")));
  }
}

TEST_F(SourcesTest, ThePackedShapeIsThatOfAllPictures) {
  write_idx(folder_.path() / "idx", "train", 2, std::string(2, '\0'));
  pack(*open("mnist", {.path = path() + "/idx"}), record_file());
  const auto shape = [&] {
    const formats::RecordReader reader(record_file());
    return formats::unpack_metadata(reader.metadata()).shape;
  };
  EXPECT_THAT(shape(), ElementsAre(2, 3, 1));
  write_png(folder_.path() / "pictures/a/1.png", gray(1));
  pack(*open("folder", {.path = path() + "/pictures"}), record_file());
  EXPECT_THAT(shape(), IsEmpty()) << "encoded pictures say it themselves";
}

TEST_F(SourcesTest, LabelsOutsideTheClassesOfARecordFileAreFound) {
  formats::RecordWriter writer(record_file(),
                               formats::pack_metadata({.kind = "own", .classes = {"a", "b"}}));
  const std::vector<std::byte> pixel(1);
  writer.append(formats::pack_sample({.kind = formats::PictureKind::kPixels,
                                      .height = 1,
                                      .width = 1,
                                      .channels = 1,
                                      .labels = {2},
                                      .picture = pixel}));
  writer.finish();
  const Survey found = survey(*open("records", {.path = record_file()}));
  EXPECT_EQ(found.unusable, 1);
  EXPECT_THAT(found.first_unusable,
              ElementsAre(HasSubstr("label 2 is not one of 2 classes (sample 0)")));
}

TEST_F(SourcesTest, RealCifarIsTheSameInBothForms) {
  for (const char* name : {"cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"}) {
    const auto source = open("cifar10", {.path = (kData / "cifar10" / name).string()});
    EXPECT_THAT(source->about().classes, testing::Contains("airplane")) << name;
    const Survey found = survey(*source);
    EXPECT_EQ(found.height.most, 32);
    EXPECT_THAT(found.channels, ElementsAre(3));
    EXPECT_EQ(found.damaged, 0);
    EXPECT_THAT(test::error_text<DataError>(
                    [&] { (void)open("cifar100", {.path = (kData / "cifar10" / name).string()}); }),
                HasSubstr("is CIFAR-10, not CIFAR-100"));
  }
}

TEST_F(SourcesTest, CifarsPlanesBecomePixels) {
  std::string batch(1, '\3');  // a label, then 1,024 reds, greens and blues
  batch += std::string(1024, '\x10') + std::string(1024, '\x20') + std::string(1024, '\x30');
  write(folder_.path() / "data_batch_1.bin", batch);
  const auto source = open("cifar10", {.path = path() + "/data_batch_1.bin"});
  ASSERT_EQ(source->size(), 1) << "a batch counts once, not as train and as test";
  Scratch scratch;
  const image::Image picture = source->picture(0);
  EXPECT_EQ(picture.order(), image::Order::kRgb);
  const auto* last = picture.row<uint8_t>(31) + ptrdiff_t{3} * 31;
  EXPECT_THAT(std::vector<uint8_t>(last, last + 3), ElementsAre(0x10, 0x20, 0x30));
}

TEST_F(SourcesTest, RealKeypointsKeepUnknownCoordinatesAndTheUnlabelled) {
  const auto source = open("keypoints", {.path = (kData / "keypoints").string()});
  EXPECT_THAT(source->about().point_names, SizeIs(15));
  ASSERT_THAT(source->about().splits, SizeIs(2));
  Scratch scratch;
  EXPECT_THAT(source->get(0, scratch).points, SizeIs(30));
  EXPECT_THAT(source->get(source->size() - 1, scratch).points, IsEmpty());
  const Survey found = survey(*source);
  EXPECT_GE(found.points.least, 0);
  EXPECT_LE(found.points.most, 96);
  EXPECT_EQ(open("keypoints", {.path = (kData / "keypoints/training.csv.gz").string()})
                ->about()
                .splits.size(),
            1U);
}

TEST_F(SourcesTest, RealMnistJsonBecomesGrays) {
  const auto source = open("mnist_json", {.path = (kData / "mnist").string()});
  EXPECT_EQ(source->about().full, 256);
  EXPECT_THAT(source->about().splits, SizeIs(3));
  const Survey found = survey(*source);
  EXPECT_EQ(found.height.most, 28);
  EXPECT_GT(found.pixels.most, 250);
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST_F(SourcesTest, RealFlowersThatAreNotThereAreCounted) {
  const fs::path real = ARGOSY_SHARED_DATA;
  const auto source =
      open("flowers102", {.path = (real / "flowers102").string(), .absent = Absent::kSkip});
  EXPECT_EQ(source->size() + source->about().missing, 8189);
  EXPECT_EQ(source->size(), 535);
  EXPECT_THAT(source->about().classes, SizeIs(102));
  Scratch scratch;
  EXPECT_EQ(source->get(0, scratch).picture.kind, StoredPicture::Kind::kEncoded);
  // The archive itself may be named too; its index lies beside it.
  const std::string archive = (real / "flowers102/102flowers.tgz").string();
  EXPECT_EQ(open("flowers102", {.path = archive, .absent = Absent::kSkip})->size(), 535);
}
#endif

TEST_F(SourcesTest, WhatAPathLooksLike) {
  EXPECT_EQ(recognise((kData / "cifar10/cifar-10-python.tar.gz").string()), "cifar10");
  EXPECT_EQ(recognise((kData / "keypoints").string()), "keypoints");
  EXPECT_EQ(recognise((kData / "mnist/mnist.json.gz").string()), "mnist_json");
  EXPECT_EQ(recognise((kData / "nothing").string()), "");
  write(folder_.path() / "notes.txt", "ARGO");
  EXPECT_EQ(recognise(path() + "/notes.txt"), "");
  EXPECT_THROW((void)open("imagenet", {.path = path()}), UsageError);
  EXPECT_THAT(
      test::error_text<DataError>([&] { (void)open("mnist_json", {.path = path() + "/nowhere"}); }),
      HasSubstr("[datasets.open] " + path() + "/nowhere: is not there"));
}

}  // namespace
}  // namespace argosy::datasets
