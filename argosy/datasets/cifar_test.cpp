#include "argosy/datasets/cifar.h"

#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/pickler.h"
#include "argosy/formats/test_archives.h"
#include "argosy/formats/test_damage.h"
#include "argosy/formats/test_files.h"

namespace argosy::datasets {
namespace {

using formats::gzip;
using formats::MemoryFile;
using formats::pickle;
using formats::read_flipped;
using formats::read_truncated;
using formats::tar;
using formats::TestFile;
using formats::TestMembers;
using formats::zip;

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr size_t kImage = CifarData::kImageBytes;

/// Binary samples of CIFAR-10: the label, then pixels that all have the value of `first` + index.
std::string batch10(const std::vector<int>& labels, int first = 0) {
  std::string text;
  for (size_t i = 0; i < labels.size(); ++i) {
    text += static_cast<char>(labels[i]);
    text += std::string(kImage, static_cast<char>(first + static_cast<int>(i)));
  }
  return text;
}

std::string batch100(const std::vector<std::pair<int, int>>& labels) {
  std::string text;
  for (const auto& [coarse, fine] : labels) {
    text += static_cast<char>(coarse);
    text += static_cast<char>(fine);
    text += std::string(kImage, static_cast<char>(fine));
  }
  return text;
}

formats::PickleValue pixels(size_t images, int first = 0) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < images; ++i) {
    bytes.insert(bytes.end(), kImage, static_cast<uint8_t>(first + static_cast<int>(i)));
  }
  return formats::PickleValue::array(
      formats::PickleArray::of(formats::PickleType::kU8,
                               {static_cast<int64_t>(images), static_cast<int64_t>(kImage)},
                               bytes));
}

formats::PickleValue ints(const std::vector<int>& values) {
  return formats::PickleValue::list({values.begin(), values.end()});
}

formats::PickleValue key(const char* text) {
  return formats::PickleValue::bytes(text);
}

/// The same in the Python form.
std::string python10(const std::vector<int>& labels, int first = 0) {
  return pickle(formats::PickleValue::dict(
      {{key("data"), pixels(labels.size(), first)}, {key("labels"), ints(labels)}}));
}

std::string python100(const std::vector<int>& coarse, const std::vector<int>& fine) {
  return pickle(formats::PickleValue::dict({{"data", pixels(fine.size())},
                                            {"fine_labels", ints(fine)},
                                            {"coarse_labels", ints(coarse)}}));
}

/// Six batches of CIFAR-10 with 2, 1, 3, 1, 1 samples for training and 2 for testing, out of order.
TestMembers members10(bool python, const std::string& folder) {
  const std::string end = python ? "" : ".bin";
  const auto batch = [&](const std::vector<int>& labels, int first) {
    return python ? python10(labels, first) : batch10(labels, first);
  };
  return {{folder + "data_batch_3" + end, batch({3, 4, 5}, 3)},
          {folder + "readme.html", "<html>"},
          {folder + "data_batch_1" + end, batch({0, 1}, 0)},
          {folder + "data_batch_2" + end, batch({2}, 2)},
          {folder + "test_batch" + end, batch({9, 9}, 100)},
          {folder + "data_batch_5" + end, batch({7}, 7)},
          {folder + "data_batch_4" + end, batch({6}, 6)}};
}

/// Files of a test, unpacked.
class TestFolder final {
 public:
  explicit TestFolder(const TestMembers& members) : marker_("") {
    for (const auto& [name, content] : members) {
      const std::filesystem::path file = std::filesystem::path(path()) / name;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << content;
    }
  }
  [[nodiscard]] std::string path() const {
    return std::filesystem::path(marker_.path()).parent_path() / "data";
  }

 private:
  TestFile marker_;
};

DataError error_of(const std::string& path, const CifarOptions& options = {}) {
  try {
    (void)read_cifar(path, options);
  } catch (const DataError& error) {
    EXPECT_THAT(error.place().path, HasSubstr(path));
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

DataError error_of_batch(const std::string& content) {
  return error_of(TestFile(content, "batch").path());
}

void expect_ordered(const CifarData& data) {
  EXPECT_EQ(data.num_classes, 10);
  EXPECT_THAT(data.labels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_TRUE(data.coarse_labels.empty());
  ASSERT_EQ(data.pixels.size(), 8 * kImage);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_THAT(std::vector<uint8_t>(data.pixels.begin() + static_cast<int64_t>(i * kImage),
                                     data.pixels.begin() + static_cast<int64_t>((i + 1) * kImage)),
                Each(i));
  }
}

TEST(Cifar, BatchesAreInOrderWhateverTheForm) {
  for (const bool python : {false, true}) {
    const TestMembers members = members10(python, "cifar/");
    for (const std::string& archive : {tar(members), gzip(tar(members)), zip(members)}) {
      const TestFile file(archive, "any.name");
      expect_ordered(read_cifar(file.path()));
      const CifarData test = read_cifar(file.path(), {.part = CifarPart::kTest});
      EXPECT_THAT(test.labels, ElementsAre(9, 9));
    }
    const TestFolder folder(members);
    expect_ordered(read_cifar(folder.path()));
    expect_ordered(read_cifar(folder.path() + "/cifar"));
    expect_ordered(read_cifar(folder.path() + "/cifar/"));
  }
}

TEST(Cifar, Cifar100HasCoarseLabelsToo) {
  const std::string python = python100({19, 0}, {99, 1});
  const std::string binary = batch100({{19, 99}, {0, 1}});
  for (const auto& members :
       {TestMembers{{"train", python}, {"test", python}}, TestMembers{{"train.bin", binary}}}) {
    const CifarData data = read_cifar(TestFile(tar(members)).path());
    EXPECT_EQ(data.num_classes, 100);
    EXPECT_THAT(data.labels, ElementsAre(99, 1));
    EXPECT_THAT(data.coarse_labels, ElementsAre(19, 0));
    EXPECT_EQ(data.pixels.size(), 2 * kImage);
    EXPECT_THAT(data.classes, SizeIs(100));
    EXPECT_THAT(data.coarse_classes, SizeIs(20));
    EXPECT_EQ(data.classes[99], "worm");
    EXPECT_EQ(data.coarse_classes[19], "vehicles_2");
  }
}

TEST(Cifar, ASingleBatchIsTakenWhole) {
  for (const std::string& content :
       {batch10({5, 6}), gzip(batch10({5, 6})), python10({5, 6}), gzip(python10({5, 6}))}) {
    const TestFile file(content, "whatever");
    EXPECT_THAT(read_cifar(file.path()).labels, ElementsAre(5, 6));
    EXPECT_THAT(read_cifar(file.path(), {.part = CifarPart::kTest}).labels, ElementsAre(5, 6));
  }
  EXPECT_THAT(read_cifar(TestFile(batch100({{1, 50}})).path()).coarse_labels, ElementsAre(1));
}

TEST(Cifar, ASizeThatFitsBothIsSettledByTheLabels) {
  const std::vector<int> labels(3074, 7);
  EXPECT_EQ(read_cifar(TestFile(batch10(labels)).path()).num_classes, 10);
  const std::vector<std::pair<int, int>> pairs(3073, {12, 34});
  EXPECT_EQ(read_cifar(TestFile(batch100(pairs)).path()).num_classes, 100);
}

TEST(Cifar, ClassNamesComeFromTheFilesBeside) {
  std::string text;
  std::vector<formats::PickleValue> names;
  for (int i = 0; i < 10; ++i) {
    text += "class " + std::to_string(i) + "\r\n";
    names.push_back(formats::PickleValue::bytes("class " + std::to_string(i)));
  }
  const std::string meta =
      pickle(formats::PickleValue::dict({{key("label_names"), formats::PickleValue::list(names)}}));
  TestMembers binary = members10(false, "");
  binary.emplace_back("batches.meta.txt", text + "\n");
  TestMembers python = members10(true, "");
  python.emplace_back("batches.meta", meta);
  for (const TestMembers& members : {binary, python}) {
    EXPECT_EQ(read_cifar(TestFile(tar(members)).path()).classes[9], "class 9");
  }
  EXPECT_EQ(read_cifar(TestFile(tar(members10(true, ""))).path()).classes[9], "truck");
  binary.back().second = "only\ntwo\n";
  EXPECT_THAT(error_of(TestFile(tar(binary)).path()).what(),
              HasSubstr("wrong counts: 2 class names for 10 classes"));
  python.back().second = pickle(formats::PickleValue::dict({{"names", 1}}));
  EXPECT_THAT(error_of(TestFile(tar(python)).path()).what(), HasSubstr("no key 'label_names'"));
  python.back().second =
      pickle(formats::PickleValue::dict({{"label_names", formats::PickleValue::list({1})}}));
  EXPECT_THAT(error_of(TestFile(tar(python)).path()).what(),
              HasSubstr("expected a str, got int 1"));
}

TEST(Cifar, ClassNamesOfCifar100) {
  std::string fine;
  std::string coarse;
  for (int i = 0; i < 100; ++i) {
    fine += "fine " + std::to_string(i) + "\n";
    coarse += i < 20 ? "coarse " + std::to_string(i) + "\n" : "";
  }
  const CifarData data = read_cifar(TestFile(tar({{"train.bin", batch100({{0, 0}})},
                                                  {"fine_label_names.txt", fine},
                                                  {"coarse_label_names.txt", coarse}}))
                                        .path());
  EXPECT_EQ(data.classes[99], "fine 99");
  EXPECT_EQ(data.coarse_classes[19], "coarse 19");
}

TEST(Cifar, LabelsOutOfRangeNameMemberSampleAndByte) {
  TestMembers members = members10(false, "c/");
  members[2].second = batch10({0, 10});
  const TestFile file(gzip(tar(members)), "cifar.tar.gz");
  const DataError error = error_of(file.path());
  EXPECT_THAT(error.what(), HasSubstr("[datasets.cifar]"));
  EXPECT_THAT(error.what(), HasSubstr("label 10 is out of range: expected 0 to 9"));
  EXPECT_EQ(error.place().path, file.path() + ":c/data_batch_1.bin");
  EXPECT_EQ(error.place().index, 1);
  EXPECT_EQ(error.place().offset, 3073);
  members = members10(true, "c/");
  members[0].second = python10({3, -1, 5});
  const DataError third = error_of(TestFile(tar(members)).path());
  EXPECT_THAT(third.what(), HasSubstr("label -1 is out of range"));
  EXPECT_EQ(third.place().index, 4);  // after the three of batches 1 and 2
  EXPECT_THAT(error_of_batch(batch100({{20, 1}})).what(),
              HasSubstr("label 20 is out of range: expected 0 to 19"));
  EXPECT_THAT(error_of_batch(python100({1}, {100})).what(),
              HasSubstr("label 100 is out of range: expected 0 to 99"));
}

TEST(Cifar, CountsThatDifferAreErrors) {
  const auto batch = [](const formats::PickleValue& data, const formats::PickleValue& labels) {
    return error_of_batch(pickle(formats::PickleValue::dict({{"data", data}, {"labels", labels}})));
  };
  EXPECT_THAT(batch(pixels(2), ints({1, 2, 3})).what(),
              HasSubstr("wrong counts: 2 images and 3 of 'labels'"));
  EXPECT_THAT(batch(pixels(2), 5).what(),
              HasSubstr("'labels': expected a list of ints, got int 5"));
  EXPECT_THAT(batch(pixels(1), formats::PickleValue::list({"x"})).what(),
              HasSubstr("expected an int, got str 'x'"));
  EXPECT_THAT(batch(formats::PickleValue::array(formats::PickleArray::of(
                        formats::PickleType::kU8, {1, 3073}, std::vector<uint8_t>(3073))),
                    ints({1}))
                  .what(),
              HasSubstr("expected a numpy array u1 of N x 3072, got numpy array u1 of 1 x 3073"));
  EXPECT_THAT(batch(formats::PickleValue::array(formats::PickleArray::of(
                        formats::PickleType::kF32, {1, 3072}, std::vector<uint8_t>(4 * 3072))),
                    ints({1}))
                  .what(),
              HasSubstr("got numpy array f4"));
  EXPECT_THAT(batch(pixels(0), ints({})).what(), HasSubstr("a batch without samples"));
  EXPECT_THAT(error_of_batch(pickle(formats::PickleValue::list({}))).what(),
              HasSubstr("expected a dict, got list of 0"));
  EXPECT_THAT(error_of_batch(pickle(formats::PickleValue::dict({}))).what(),
              HasSubstr("no key 'data'"));
}

TEST(Cifar, BinaryFilesOfAnotherSizeAreTruncated) {
  const std::string whole = batch10({1, 2, 3});
  EXPECT_THAT(error_of_batch(whole.substr(0, whole.size() - 1)).what(),
              HasSubstr("9218 bytes are no whole number of samples"));
  EXPECT_THAT(error_of_batch("").what(), HasSubstr("an empty file"));
  TestMembers members = members10(false, "");
  members[0].second = batch100({{1, 1}});
  EXPECT_THAT(error_of(TestFile(tar(members)).path()).what(),
              HasSubstr("a batch of CIFAR-100 after batches of CIFAR-10"));
}

TEST(Cifar, MissingAndDoubleBatchesAreNamed) {
  TestMembers members = members10(false, "");
  members.erase(members.begin());
  EXPECT_THAT(error_of(TestFile(tar(members)).path()).what(), HasSubstr("data_batch_3 is missing"));
  members = members10(false, "");
  members.erase(members.begin() + 5);
  EXPECT_THAT(error_of(TestFile(tar(members)).path()).what(), HasSubstr("data_batch_5 is missing"));
  members = members10(false, "");
  members.emplace_back("data_batch_2", python10({2}));
  EXPECT_THAT(error_of(TestFile(tar(members)).path()).what(),
              HasSubstr("a second batch of the same part"));
  members = members10(false, "a/");
  for (const auto& member : members10(true, "b/")) {
    members.push_back(member);
  }
  EXPECT_THAT(error_of(TestFile(tar(members)).path()).what(),
              HasSubstr("batches in several folders: a, b"));
  EXPECT_THAT(error_of(TestFolder(members).path()).what(), HasSubstr("batches in several folders"));
}

TEST(Cifar, WithoutBatchesItSaysWhatItLookedFor) {
  EXPECT_THAT(
      error_of(TestFile(tar({{"readme", "x"}, {"batches.meta.txt", "a"}})).path()).what(),
      HasSubstr("no batches of the training part: expected data_batch_1 to data_batch_5 or train"));
  const TestFolder empty(TestMembers{{"sub/x", ""}});
  EXPECT_THAT(error_of(empty.path(), {.part = CifarPart::kTest}).what(),
              HasSubstr("no batches of the test part: expected test_batch or test"));
  EXPECT_THROW((void)read_cifar("/nonexistent"), DataError);
}

TEST(Cifar, AnUnreadableFolderSaysWhy) {
  const TestFolder folder(TestMembers{{"data_batch_1", "x"}});
  std::filesystem::permissions(folder.path(), std::filesystem::perms::none);
  const uid_t self = ::geteuid();
  constexpr uid_t kNobody = 65534;  // root reads every folder
  ASSERT_TRUE(self != 0 || ::seteuid(kNobody) == 0);
  const std::string message = error_of(folder.path()).what();
  ASSERT_TRUE(self != 0 || ::seteuid(self) == 0);
  EXPECT_THAT(message, HasSubstr("cannot list the folder: Permission denied"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

TEST(Cifar, PicklesThatWouldDoHarmAreRefusedByMember) {
  TestMembers members = members10(true, "c/");
  members[2].second =
      "\x80\x02"
      "cos\nsystem\nX\x04" +
      std::string(3, '\0') + "true\x85R.";
  const DataError error = error_of(TestFile(tar(members)).path());
  EXPECT_THAT(error.what(), HasSubstr("refused: the global os.system"));
  EXPECT_THAT(error.place().path, HasSubstr(":c/data_batch_1"));
}

TEST(Cifar, LimitsNameThemselves) {
  const TestFile archive(tar(members10(false, "")));
  EXPECT_THAT(error_of(archive.path(), {.limits = {.member_bytes = 5000}}).what(),
              HasSubstr("raise ArchiveLimits::member_bytes"));
  const TestFile batch(batch10({1, 2}));
  EXPECT_THAT(error_of(batch.path(), {.limits = {.member_bytes = 5000}}).what(),
              HasSubstr("raise ArchiveLimits::member_bytes"));
}

TEST(Cifar, ManyBatchesEndAtTheLimitOfThemAll) {
  TestMembers members;
  for (int i = 0; i < 20; ++i) {
    members.emplace_back("folder" + std::to_string(i) + "/data_batch_1.bin", batch10({1, 2}));
  }
  const CifarOptions options{.limits = {.total_bytes = 10'000}};
  const TestFile archive(tar(members));
  const TestFolder folder(members);
  for (const std::string& path : {archive.path(), folder.path()}) {
    try {
      (void)read_cifar(path, options);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("raise ArchiveLimits::total_bytes"));
    }
  }
}

TEST(Cifar, TruncatedAnywhereItIsAnErrorAndFlippedNothingWorse) {
  const MemoryFile file;
  const auto read = [&](const std::string& damaged) {
    const CifarData data = read_cifar(file.path(damaged));
    EXPECT_EQ(data.pixels.size(), data.size() * kImage);
  };
  // One sample: a binary batch of two that was cut behind the first is a whole one of one. A coarse
  // label above 9: cut by a byte, CIFAR-100's sample is none of CIFAR-10.
  for (const std::string& content :
       {batch10({1}), python10({1, 2}), batch100({{12, 2}}), python100({1, 2}, {3, 4})}) {
    EXPECT_EQ(read_truncated(content, read).refused, 200);
    read_flipped(content, read, 5'000);
  }
}

TEST(Cifar, ArchivesTruncatedAndFlipped) {
  const MemoryFile file;
  const auto read = [&](const std::string& damaged) { (void)read_cifar(file.path(damaged)); };
  for (const bool python : {false, true}) {
    const std::string content = tar(members10(python, "c/"));
    EXPECT_EQ(read_truncated(content, read).refused, 200);
    EXPECT_EQ(read_truncated(gzip(content), read).refused, 200);
    read_flipped(content, read, 1'000);
    read_flipped(gzip(content), read, 1'000);
  }
}

struct Expected {
  std::string archive;
  std::string part;
  uint32_t checksum = 0;
  std::vector<uint8_t> labels;
};

/// What Python's own modules found in them: tests/data/cifar10/cut.py.
std::vector<Expected> expected_archives() {
  std::vector<Expected> all;
  std::ifstream file(ARGOSY_TEST_DATA "/cifar10/expected.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Expected one;
    words >> one.archive >> one.part >> one.checksum;
    for (int label = 0; words >> label;) {
      one.labels.push_back(static_cast<uint8_t>(label));
    }
    all.push_back(one);
  }
  return all;
}

TEST(Cifar, RealArchivesHoldWhatPythonFoundInThem) {
  const std::vector<Expected> all = expected_archives();
  ASSERT_EQ(all.size(), 4U);
  for (const Expected& expected : all) {
    SCOPED_TRACE(expected.archive + " " + expected.part);
    const CifarData data =
        read_cifar(ARGOSY_TEST_DATA "/cifar10/" + expected.archive,
                   {.part = expected.part == "test_batch" ? CifarPart::kTest : CifarPart::kTrain});
    EXPECT_EQ(data.labels, expected.labels);
    EXPECT_EQ(crc32(0, data.pixels.data(), static_cast<uInt>(data.pixels.size())),
              expected.checksum);
    EXPECT_EQ(data.classes[0], "airplane");
  }
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST(Cifar, ReadsTheLargerSubsets) {
  const std::string folder = ARGOSY_SHARED_DATA "/cifar10/";
  EXPECT_EQ(read_cifar(folder + "cifar-10-binary.tar.gz").size(), 10'000U);
  EXPECT_EQ(read_cifar(folder + "cifar-10-binary.tar.gz", {.part = CifarPart::kTest}).size(),
            2'000U);
  EXPECT_EQ(read_cifar(folder + "cifar-10-python.tar.gz").size(), 3'000U);
  const CifarData test = read_cifar(folder + "cifar-10-python.tar.gz", {.part = CifarPart::kTest});
  EXPECT_EQ(test.size(), 600U);
  EXPECT_EQ(test.pixels.size(), 600 * kImage);
}
#endif

}  // namespace
}  // namespace argosy::datasets
