#include "argosy/datasets/keypoints.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/datasets/grays.h"
#include "argosy/formats/damage_test_support.h"
#include "argosy/formats/test_files.h"

namespace argosy::datasets {
namespace {

using formats::flip_at_random;
using formats::gzip;
using formats::MemoryLimit;
using formats::TestFile;
using formats::truncate_everywhere;

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

// 2 × 2 pixels, two points; the second face lacks nose_y, the third everything of the eye.
constexpr const char* kTable =
    "eye_x,eye_y,nose_x,nose_y,Image\n"
    "1.5,2,3,4,0 1 2 255\n"
    "5,6,7,,9 8 7 6\n"
    ",,11,12,1 1 1 1\n"
    "13,14,15,1.6e1,20 30 40 50\n";

template <typename Read>
DataError error_of(const std::string& text, const Read& read) {
  const TestFile file(text, "training.csv");
  try {
    (void)read(file.path());
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, file.path());
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return DataError("test", "nothing");
}

DataError table_error(const std::string& text, Points points = Points::kDrop) {
  return error_of(
      text, [&](const std::string& path) { return read_keypoints(path, {.points = points}); });
}

TEST(Keypoints, DropLeavesOutFacesWithMissingPoints) {
  const Keypoints faces = read_keypoints(TestFile(kTable).path());
  EXPECT_EQ(faces.size(), 2);
  EXPECT_EQ(faces.side, 2);
  EXPECT_THAT(faces.names, ElementsAre("eye", "nose"));
  EXPECT_THAT(faces.pixels, ElementsAre(0, 1, 2, 255, 20, 30, 40, 50));
  EXPECT_THAT(faces.points, ElementsAre(1.5F, 2, 3, 4, 13, 14, 15, 16));
  EXPECT_THAT(faces.rows, ElementsAre(0, 3));
}

TEST(Keypoints, KeepMarksMissingCoordinatesWithNaN) {
  const Keypoints faces = read_keypoints(TestFile(kTable).path(), {.points = Points::kKeep});
  EXPECT_EQ(faces.size(), 4);
  EXPECT_THAT(
      faces.points,
      ElementsAre(1.5F, 2, 3, 4, 5, 6, 7, IsNan(), IsNan(), IsNan(), 11, 12, 13, 14, 15, 16));
}

TEST(Keypoints, ForwardFillTakesTheLastKnownCoordinate) {
  const Keypoints faces = read_keypoints(TestFile(kTable).path(), {.points = Points::kForwardFill});
  EXPECT_THAT(faces.points, ElementsAre(1.5F, 2, 3, 4, 5, 6, 7, 4, 5, 6, 11, 12, 13, 14, 15, 16));
  EXPECT_THAT(faces.pixels, testing::SizeIs(16));
}

TEST(Keypoints, ForwardFillHasNothingForTheFirstFace) {
  const DataError error = table_error("a_x,a_y,Image\n1,nan,5\n", Points::kForwardFill);
  EXPECT_THAT(error.what(), HasSubstr("line 2: column 2 (\"a_y\"): missing in the first row"));
}

TEST(Keypoints, RowsThatWereLeftOutReserveNothing) {
  // 200,000 rows without points, then a face of 1000 × 1000: not room for 200,000 such faces.
  std::string table = "eye_x,eye_y,Image\n";
  for (int i = 0; i < 200'000; ++i) {
    table += ",,\n";
  }
  table += "1,2,7";
  for (int i = 1; i < 1'000'000; ++i) {
    table += " 7";
  }
  const TestFile file(table + "\n");
  const MemoryLimit limit;
  const Keypoints faces = read_keypoints(file.path());
  EXPECT_EQ(faces.size(), 1);
  EXPECT_EQ(faces.side, 1000);
  EXPECT_LT(faces.pixels.capacity(), size_t{20} << 20);
}

TEST(Keypoints, ColumnsMayStandInAnyOrder) {
  const Keypoints faces = read_keypoints(TestFile("Image,a_y,b_x,a_x,b_y\r\n7,2,3,1,4\r\n").path());
  EXPECT_THAT(faces.names, ElementsAre("b", "a"));
  EXPECT_THAT(faces.points, ElementsAre(3, 4, 1, 2));
}

TEST(Keypoints, OtherTablesAreRefusedInWords) {
  EXPECT_THAT(table_error("a_x,a_y\n1,2\n").what(), HasSubstr("the column \"Image\" is missing"));
  EXPECT_THAT(table_error("a_x,Image\n1,2\n").what(), HasSubstr("the column \"a_y\" is missing"));
  EXPECT_THAT(table_error("ImageId,Image\n1,2\n").what(),
              HasSubstr("test.csv is read by read_faces"));
  EXPECT_THAT(table_error("a_x,a_y,age,Image\n1,2,3,4\n").what(),
              HasSubstr("got 4 columns of which 3 are that"));
  EXPECT_THAT(table_error("a_x,a_y,Image\n").what(), HasSubstr("the table is empty"));
  EXPECT_THAT(table_error("a_x,a_y,Image\n1,,3\n,2,3\n").what(),
              HasSubstr("none of the 2 rows has all its points"));
}

TEST(Keypoints, ABadFieldIsNamedWithLineColumnAndRow) {
  const DataError point = table_error("a_x,a_y,Image\n1,2,3\n1,two,3\n");
  EXPECT_THAT(
      point.what(),
      HasSubstr("line 3: column 2 (\"a_y\"): expected a coordinate or nothing, got \"two\""));
  EXPECT_EQ(point.place().index, 1);
  EXPECT_THAT(table_error("a_x,a_y,Image\n1,inf,3\n").what(), HasSubstr("expected a coordinate"));
  EXPECT_THAT(table_error("a_x,a_y,Image\n1,1e99,3\n").what(), HasSubstr("expected a coordinate"));
  const auto image = [](const std::string& grays) {
    return std::string(table_error("a_x,a_y,Image\n1,2,1 2 3 4\n1,2," + grays + "\n").what());
  };
  EXPECT_THAT(image("1 2 3"), HasSubstr("(\"Image\"): expected 4 gray values, got 3"));
  EXPECT_THAT(image("1 2 3 4 5"), HasSubstr("expected 4 gray values, got 5"));
  EXPECT_THAT(image("1 2 256 4"),
              HasSubstr("number 3: expected a gray value 0 to 255, got \"256\""));
  EXPECT_THAT(image("1 -2 3 4"), HasSubstr("number 2: expected a gray value"));
  EXPECT_THAT(table_error("a_x,a_y,Image\n1,2,1 2 3\n").what(),
              HasSubstr("expected the gray values of a square, got 3"));
  EXPECT_THAT(table_error("a_x,a_y,Image\n1,2,\n").what(), HasSubstr("got 0"));
}

TEST(Keypoints, AGzipBombEndsAtTheLimit) {
  std::string text = "a_x,a_y,Image\n";
  for (int i = 0; i < 100'000; ++i) {
    text += "1,2,3\n";
  }
  EXPECT_THAT(error_of(gzip(text),
                       [](const std::string& path) {
                         return read_keypoints(path, {.most_bytes = 300'000});
                       })
                  .what(),
              HasSubstr("more than 300000 bytes of text when unpacked"));
}

/// The plain way, for comparison.
std::string numbers(size_t n, unsigned seed, std::vector<uint8_t>& expected) {
  std::mt19937 random(seed);
  std::string text;
  expected.clear();
  const unsigned most = seed % 3 == 0 ? 9 : seed % 3 == 1 ? 99 : 255;
  for (size_t i = 0; i < n; ++i) {
    expected.push_back(static_cast<uint8_t>(random() % (most + 1)));
    text += (i == 0 ? "" : " ") + std::to_string(expected.back());
  }
  return text;
}

TEST(Grays, EveryLengthAndWidthGivesTheNumbersWritten) {
  std::vector<uint8_t> expected;
  for (unsigned n = 1; n < 400; ++n) {
    const std::string text = numbers(n, n, expected);
    std::vector<uint8_t> grays(n);
    EXPECT_EQ(grays_of(text, grays), std::nullopt) << n;
    EXPECT_EQ(grays, expected) << n;
    EXPECT_EQ(count_grays(text), n);
  }
}

TEST(Grays, AnyCharacterChangedIsSeenOrRead) {
  // Each place of a text takes each of these characters: what comes must be what the words say.
  std::vector<uint8_t> expected;
  const std::string good = numbers(150, 2, expected);
  for (size_t at = 0; at < good.size(); ++at) {
    for (const char c : {' ', '0', '9', '-', '+', '.', '\0', '\xb0', '/', ':'}) {
      std::string text = good;
      text[at] = c;
      std::istringstream words(text);
      std::vector<uint8_t> wanted;
      bool fits = true;
      for (std::string word; std::getline(words, word, ' ');) {
        if (!word.empty()) {
          const bool digits = word.find_first_not_of("0123456789") == std::string::npos;
          fits = fits && digits && std::stoi(word) <= 255;
          wanted.push_back(fits ? static_cast<uint8_t>(std::stoi(word)) : 0);
        }
      }
      std::vector<uint8_t> grays(expected.size());
      const bool read = grays_of(text, grays) == std::nullopt;
      ASSERT_EQ(read, fits && wanted.size() == expected.size()) << at << " '" << c << "'";
      if (read) {
        ASSERT_EQ(grays, wanted) << at << " '" << c << "'";
      }
    }
  }
}

TEST(Grays, NumbersThatAreTooLargeAreSeenWhereverTheyStand) {
  std::vector<uint8_t> expected;
  for (const size_t at : {0, 1, 50, 77, 99}) {
    for (const char* number : {"255", "256", "257", "260", "300", "999", "1000", "2555", "12345"}) {
      std::string text;
      for (size_t i = 0; i < 100; ++i) {
        text += (i == 0 ? "" : " ") + (i == at ? number : std::to_string(200 + i % 56));
      }
      std::vector<uint8_t> grays(100);
      EXPECT_EQ(grays_of(text, grays) == std::nullopt, std::stoi(number) <= 255)
          << number << " at " << at;
    }
  }
}

TEST(Grays, MoreSpacesAndLeadingZerosAreRead) {
  std::vector<uint8_t> grays(3);
  EXPECT_EQ(grays_of("  7   0012 255  ", grays), std::nullopt);
  EXPECT_THAT(grays, ElementsAre(7, 12, 255));
}

TEST(Faces, AreReadWithTheirIds) {
  const Faces faces = read_faces(TestFile("ImageId,Image\n7,1 2 3 4\n9,5 6 7 8\n").path());
  EXPECT_THAT(faces.image_ids, ElementsAre(7, 9));
  EXPECT_EQ(faces.side, 2);
  EXPECT_THAT(faces.pixels, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  const auto read = [](const std::string& path) { return read_faces(path); };
  EXPECT_THAT(error_of("ImageId,Image\nx,1\n", read).what(),
              HasSubstr("column 1 (\"ImageId\"): expected a whole number, got \"x\""));
  EXPECT_THAT(error_of("ImageId,Image\n", read).what(), HasSubstr("the table is empty"));
}

class Submission : public testing::Test {
 protected:
  std::vector<KeypointQuery> queries{{1, 7, "eye_x"}, {2, 9, "nose_y"}, {3, 7, "eye_y"}};
  std::vector<int64_t> ids{7, 9};
  std::vector<std::string> names{"eye", "nose"};
  std::vector<float> points{1, 2, 3, 4, 5, 6, 7, 8.25F};
  TestFile file{"", "submission.csv"};

  void write() { write_submission(file.path(), queries, {ids, names, points}); }
  [[nodiscard]] std::string complaint() {
    try {
      write();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "none";
  }
};

TEST_F(Submission, AnswersTheQueriesInTheirOrder) {
  write();
  std::ifstream in(file.path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
            "RowId,Location\n1,1\n2,8.25\n3,2\n");
}

TEST_F(Submission, WrongPredictionsLeaveTheOldFile) {
  points[7] = NAN;
  EXPECT_THAT(complaint(), HasSubstr("the prediction of nose_y in image 9 is nan"));
  queries[1] = {2, 8, "nose_y"};
  EXPECT_THAT(complaint(), HasSubstr("row 2 asks for nose_y of image 8"));
  queries[1] = {2, 7, "ear_x"};
  EXPECT_THAT(complaint(), HasSubstr("row 2 asks for ear_x of image 7"));
  points.pop_back();
  EXPECT_THAT(complaint(), HasSubstr("expected 2 images x 2 names x 2 coordinates, got 7 numbers"));
  EXPECT_EQ(std::filesystem::file_size(file.path()), 0U);
  const auto folder = std::filesystem::path(file.path()).parent_path();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST_F(Submission, AnUnwritableFolderIsADataError) {
  EXPECT_THROW(write_submission("/nonexistent/s.csv", queries, {ids, names, points}), DataError);
}

const std::string kData = ARGOSY_TEST_DATA "/keypoints/";

TEST(KeypointsFiles, TheContestsTablesGoTogether) {
  const Keypoints faces = read_keypoints(kData + "training.csv.gz");
  EXPECT_EQ(faces.size(), 8);
  EXPECT_EQ(faces.side, 96);
  EXPECT_EQ(faces.names.size(), 15U);
  EXPECT_EQ(faces.names[0], "left_eye_center");
  EXPECT_FLOAT_EQ(faces.points[0], 48.818182F);
  EXPECT_EQ(faces.pixels.size(), 8 * 96 * 96U);
  for (const float coordinate : faces.points) {
    EXPECT_GE(coordinate, 0);
    EXPECT_LT(coordinate, 96);
  }
  const Faces test = read_faces(kData + "test.csv.gz");
  EXPECT_THAT(test.image_ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(std::vector<int>(test.pixels.begin(), test.pixels.begin() + 4),
              ElementsAre(243, 244, 245, 245));
  const auto queries = read_id_lookup(kData + "IdLookupTable.csv");
  EXPECT_EQ(queries.size(), 42U);
  EXPECT_EQ(queries[1].feature, "left_eye_center_y");
  const std::vector<float> points(3 * 30, 48);
  const TestFile file("");
  write_submission(file.path(), queries, {test.image_ids, faces.names, points});
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST(KeypointsFiles, TheWholeSharedTableIsRead) {
  const std::string path = ARGOSY_SHARED_DATA "/keypoints/training.csv.gz";
  const Keypoints faces = read_keypoints(path);
  EXPECT_EQ(faces.size(), 1500);
  // By pandas and NumPy.
  EXPECT_EQ(std::accumulate(faces.pixels.begin(), faces.pixels.end(), int64_t{0}), 1'270'078'429);
}
#endif

TEST(KeypointsFiles, TruncatedAnywhereTheyEndCleanly) {
  std::ifstream in(kData + "training.csv.gz", std::ios::binary);
  const std::string packed(std::istreambuf_iterator<char>(in), {});
  const auto read = [](const std::string& path) { (void)read_keypoints(path); };
  EXPECT_EQ(truncate_everywhere(packed, read).accepted, 0);
  EXPECT_GT(truncate_everywhere(kTable, read).refused, 30);
}

TEST(KeypointsFiles, BytesChangedAtRandomNeverBreakThem) {
  const auto read = [](const std::string& path) {
    (void)read_keypoints(path, {.points = Points::kForwardFill});
    (void)read_keypoints(path, {.points = Points::kKeep});
  };
  EXPECT_GT(flip_at_random(kTable, read).refused, 1'000);
  const auto read_others = [](const std::string& path) {
    (void)read_id_lookup(path);
    (void)read_faces(path);
  };
  EXPECT_GT(
      flip_at_random("RowId,ImageId,FeatureName,Image\n1,2,eye_x,3\n2,3,nose_y,4\n", read_others)
          .refused,
      1'000);
}

}  // namespace
}  // namespace argosy::datasets
