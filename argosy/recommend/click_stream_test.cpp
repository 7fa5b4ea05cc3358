#include "argosy/recommend/click_stream.h"

#include <cmath>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/formats/click_truth.h"
#include "argosy/recommend/click_feed.h"
#include "argosy/recommend/click_ids.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::recommend {
namespace {

using formats::ClickBatch;
using test::error_text;
using ::testing::HasSubstr;

/// A log whose line i has the number i in its first field.
class AClickLog : public ::testing::Test {
 protected:
  std::string numbered(int lines) {
    ClickBatch batch;
    std::string text;
    for (int line = 0; line < lines; ++line) {
      batch.resize(static_cast<size_t>(line) + 1);
      batch.numbers[static_cast<size_t>(line) * ClickBatch::kNumbers] = static_cast<float>(line);
      append_criteo_line(batch, static_cast<size_t>(line), text);
    }
    std::string path = (folder_.path() / "clicks.tsv").string();
    std::ofstream(path) << text;
    return path;
  }
  static std::vector<int> lines_of(const ClickBatch& batch) {
    std::vector<int> lines;
    for (size_t row = 0; row < batch.size(); ++row) {
      lines.push_back(static_cast<int>(batch.numbers[row * ClickBatch::kNumbers]));
    }
    return lines;
  }
  static std::vector<std::vector<int>> epoch_of(ClickStream& stream) {
    std::vector<std::vector<int>> batches;
    for (ClickBatch batch; stream.next(batch); batch.clear()) {
      batches.push_back(lines_of(batch));
    }
    return batches;
  }

  test::TempDir folder_;
};

using Batches = std::vector<std::vector<int>>;

TEST_F(AClickLog, IsDealtToTheWorkersInRounds) {
  const std::string path = numbered(17);
  ClickStream first({.path = path, .batch_size = 4, .workers = 2, .worker = 0});
  ClickStream second({.path = path, .batch_size = 4, .workers = 2, .worker = 1});
  const Batches of_first{{0, 1, 2, 3}, {8, 9, 10, 11}};
  const Batches of_second{{4, 5, 6, 7}, {12, 13, 14, 15}};  // line 16 is no batch for both
  for (int epoch = 1; epoch <= 2; ++epoch) {
    EXPECT_EQ(epoch_of(first), of_first);
    EXPECT_EQ(epoch_of(second), of_second);
    EXPECT_EQ(first.epochs(), epoch);
    EXPECT_EQ(first.rounds(), 2 * epoch);
  }
}

TEST_F(AClickLog, ARestThatNotAllGetIsLeftOut) {
  const std::string path = numbered(15);  // the second round lacks one line of the second worker
  for (int worker = 0; worker < 2; ++worker) {
    ClickStream stream({.path = path, .batch_size = 4, .workers = 2, .worker = worker});
    EXPECT_EQ(epoch_of(stream).size(), 1U) << worker;
  }
}

TEST_F(AClickLog, IsResumedByPassingOverRounds) {
  const std::string path = numbered(16);
  for (int64_t rounds = 0; rounds < 9; ++rounds) {
    ClickStream whole({.path = path, .batch_size = 2, .workers = 2, .worker = 1});  // 4 an epoch
    std::vector<int> left;
    for (int64_t i = 0; i < 12;) {
      ClickBatch batch;
      if (whole.next(batch)) {
        left = i++ == rounds ? lines_of(batch) : left;
      }
    }
    ClickStream resumed({.path = path, .batch_size = 2, .workers = 2, .worker = 1});
    resumed.skip(rounds);
    EXPECT_EQ(resumed.rounds(), rounds);
    ClickBatch batch;
    const bool at_end = rounds > 0 && rounds % 4 == 0;  // which it tells first
    EXPECT_EQ(resumed.next(batch), !at_end);
    if (at_end) {
      EXPECT_TRUE(resumed.next(batch));
    }
    EXPECT_EQ(lines_of(batch), left) << rounds;
    EXPECT_EQ(resumed.epochs(), rounds / 4);
  }
}

TEST_F(AClickLog, IsResumedByOthersBehindWhatWasTaken) {
  const std::string path = numbered(20);
  ClickStream alone({.path = path, .batch_size = 3});
  ClickBatch batch;
  std::vector<int> seen;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(alone.next(batch));
  }
  const std::optional<ClickPlace> place = ClickPlace::parse(alone.place().to_text());
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->lines, 6);
  seen = lines_of(batch);
  for (int worker = 0; worker < 2; ++worker) {
    ClickStream stream(
        {.path = path, .batch_size = 2, .workers = 2, .worker = worker, .from = *place});
    for (const std::vector<int>& lines : epoch_of(stream)) {
      seen.insert(seen.end(), lines.begin(), lines.end());
    }
    EXPECT_EQ(stream.place().epoch, 1);
    EXPECT_EQ(epoch_of(stream).size(), 5U);  // the next epoch begins at its first line
  }
  std::vector<int> all(18);  // each line once; two are no round of four
  std::iota(all.begin(), all.end(), 0);
  EXPECT_THAT(seen, ::testing::UnorderedElementsAreArray(all));
  ClickStream at_end({.path = path, .batch_size = 3, .from = {.epoch = 2, .lines = 18}});
  EXPECT_TRUE(epoch_of(at_end).empty());
  EXPECT_EQ(at_end.place().epoch, 3);
  for (const char* words :
       {"", "epoch 1", "epoch x lines 2", "epoch 1 lines -2", "lines 1 epoch 2"}) {
    EXPECT_FALSE(ClickPlace::parse(words).has_value()) << words;
  }
}

TEST_F(AClickLog, IsReadOnceToPassOverManyEpochs) {
  ClickStream stream({.path = numbered(9), .batch_size = 2, .from = {.epoch = 1, .lines = 4}});
  constexpr int64_t kEpochs = 1'000'000'000;  // two rounds of the first, and four of each
  stream.skip(2 + 4 * kEpochs + 1);
  EXPECT_EQ(stream.rounds(), 2 + 4 * kEpochs + 1);
  EXPECT_EQ(stream.place().epoch, 2 + kEpochs);
  EXPECT_EQ(stream.place().lines, 2);
}

TEST_F(AClickLog, ALineThatIsLeftOutMayBeTorn) {
  const std::string path = numbered(6);
  std::ofstream(path, std::ios::app) << "1\t2";
  ClickStream stream({.path = path, .batch_size = 4});
  EXPECT_EQ(epoch_of(stream), (Batches{{0, 1, 2, 3}}));
  ClickStream last({.path = path, .batch_size = 2, .workers = 2, .worker = 1});
  EXPECT_EQ(epoch_of(last), (Batches{{2, 3}}));
  std::ofstream(path, std::ios::app) << "\n1";  // now the second round is whole
  EXPECT_THAT(error_text<DataError>([&] { (void)epoch_of(stream); }), HasSubstr("line 7"));
}

TEST_F(AClickLog, EndsAtItsLimit) {
  ClickStream stream({.path = numbered(20), .batch_size = 3, .limit = 10});
  EXPECT_EQ(epoch_of(stream), (Batches{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}));
  EXPECT_EQ(epoch_of(stream).size(), 3U);
}

TEST_F(AClickLog, ThatIsTooShortIsAnError) {
  ClickStream stream({.path = numbered(7), .batch_size = 4, .workers = 2});
  ClickBatch batch;
  EXPECT_THAT(error_text<DataError>([&] { (void)stream.next(batch); }),
              HasSubstr("7 lines are no batch of 4 for each of 2 workers"));
  ClickStream cut({.path = numbered(7), .batch_size = 4, .limit = 3});
  EXPECT_THAT(
      error_text<DataError>([&] { (void)cut.next(batch); }),
      HasSubstr("limit=3 leaves 3 lines, which are no batch of 4 for each of 1 worker. Take "
                "a larger limit"));
  EXPECT_THROW(ClickStream({.path = "x", .batch_size = 0}), UsageError);
  EXPECT_THROW(ClickStream({.path = "x", .workers = 2, .worker = 2}), UsageError);
}

TEST_F(AClickLog, IsReadAheadByAThread) {
  const std::string path = numbered(12);
  ClickFeed feed({.path = path, .batch_size = 4}, /*rounds=*/2, /*epochs=*/2);
  std::string seen;
  while (const auto item = feed.next()) {
    seen += item->ends_epoch() ? "end " : std::to_string(item->epoch) + " ";
    EXPECT_EQ(item->place.lines % 4, 0);
    EXPECT_EQ(item->place.epoch, item->ends_epoch() ? item->epoch + 1 : item->epoch);
  }
  EXPECT_EQ(seen, "0 end 1 1 1 end ");
  EXPECT_FALSE(feed.next().has_value());
  const ClickFeed unused({.path = path, .batch_size = 1}, 0, 1000);  // ends all the same
}

TEST_F(AClickLog, ThatIsDamagedIsTheReadersError) {
  const std::string path = numbered(6);
  std::ofstream(path, std::ios::app) << "2\n";
  ClickFeed feed({.path = path, .batch_size = 1}, 0, 1);
  EXPECT_THAT(error_text<DataError>([&] {
                while (feed.next().has_value()) {
                }
              }),
              HasSubstr("line 7"));
}

TEST(ClickIds, AreDifferentInEachColumn) {
  ClickBatch batch;
  batch.resize(3);
  batch.numbers[0] = NAN;
  batch.numbers[1] = NAN;
  batch.numbers[13] = 9;  // of the second line: the same in three columns
  batch.numbers[14] = 9;
  batch.numbers[15] = -9;
  batch.categories[52] = uint64_t{1} << 32U | 5;  // of the third line
  const ClickInputs inputs = click_inputs(batch);
  EXPECT_EQ(inputs.ids.sizes(), (at::IntArrayRef{3, kClickColumns}));
  EXPECT_EQ(inputs.ids[2][0].item<int64_t>(), int64_t{1} << 32 | 5);
  EXPECT_NE(inputs.ids[0][26].item<int64_t>(), inputs.ids[0][27].item<int64_t>()) << "missing";
  EXPECT_NE(inputs.ids[0][0].item<int64_t>(), inputs.ids[0][1].item<int64_t>()) << "empty";
  EXPECT_NE(inputs.ids[1][26].item<int64_t>(), inputs.ids[1][27].item<int64_t>());
  EXPECT_NE(inputs.ids[1][27].item<int64_t>() - inputs.ids[1][28].item<int64_t>(), 0);
  EXPECT_EQ(inputs.ids[1][26].item<int64_t>() % (int64_t{1} << 32), std::lround(4 * std::log(10)));
  EXPECT_NE(inputs.ids[1][28].item<int64_t>(), inputs.ids[2][28].item<int64_t>()) << "its sign";
}

}  // namespace
}  // namespace argosy::recommend
