#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "argosy/base/error.h"
#include "argosy/data/data.h"
#include "argosy/os/whole_file.h"
#include "argosy/text/text.h"

#include "tests/support/error_text.h"
#include "tests/support/temp_dir.h"

namespace argosy::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<int32_t>;
using Rows = std::vector<std::vector<int64_t>>;

std::vector<int64_t> row_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  return {dense.data_ptr<int64_t>(), dense.data_ptr<int64_t>() + dense.numel()};
}

Rows rows_of(const at::Tensor& tensor) {
  Rows rows;
  for (int64_t i = 0; i < tensor.size(0); ++i) {
    rows.push_back(row_of(tensor[i]));
  }
  return rows;
}

class TextData : public testing::Test {
 protected:
  /// A token file of bytes 0, 1, … n - 1 that is one document.
  [[nodiscard]] TokenFile numbers(int32_t n) const {
    Ids ids(static_cast<size_t>(n));
    std::iota(ids.begin(), ids.end(), 0);
    TokenFileWriter out(path("numbers.tokens"), byte_tokenizer());
    out.append(ids);
    out.finish();
    return TokenFile(path("numbers.tokens"));
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  std::string write(const std::string& name, const std::string& content) const {
    EXPECT_TRUE(
        os::write_whole(path(name), content, {.disk = os::WholeFileOptions::Disk::kNot}).ok());
    return path(name);
  }

  const test::TempDir folder_{};
};

TEST_F(TextData, WindowsHaveTheNextTokenAsTarget) {
  const TokenWindows windows(numbers(10), {.sequence_length = 3});
  EXPECT_EQ(windows.size(), 3);
  const auto [inputs, targets] = windows.get(2);
  EXPECT_THAT(row_of(inputs), ElementsAre(6, 7, 8));
  EXPECT_THAT(row_of(targets), ElementsAre(7, 8, 9));
  EXPECT_EQ(inputs.scalar_type(), at::kLong);
  EXPECT_EQ(TokenWindows(numbers(9), {.sequence_length = 3}).size(), 2);
  EXPECT_EQ(TokenWindows(numbers(4), {.sequence_length = 3}).size(), 1);
}

TEST_F(TextData, WindowsMayOverlap) {
  const TokenWindows windows(numbers(10), {.sequence_length = 4, .stride = 2});
  const std::vector<int64_t> second{1};  // in a loop of one's own, without a loader and its pool
  EXPECT_TRUE(
      at::equal(std::get<0>(windows.get_batch(second, {})).squeeze(0), windows.get(1).first));
  EXPECT_EQ(windows.size(), 3);
  EXPECT_THAT(row_of(windows.get(2).first), ElementsAre(4, 5, 6, 7));
}

TEST_F(TextData, WindowsOfAPartOfTheFile) {
  const TokenWindows begin(numbers(20), {.sequence_length = 3, .tokens = 8});
  EXPECT_EQ(begin.size(), 2);
  EXPECT_THAT(row_of(begin.get(1).second), ElementsAre(4, 5, 6));
  const TokenWindows end(numbers(20), {.sequence_length = 3, .first = 8});
  EXPECT_EQ(end.size(), 3);
  EXPECT_THAT(row_of(end.get(0).first), ElementsAre(8, 9, 10));
  EXPECT_THAT(row_of(end.get(2).second), ElementsAre(15, 16, 17));
  const auto refused = [&](const TokenWindowsOptions& options) {
    return test::error_text<UsageError>([&] { TokenWindows(numbers(20), options); });
  };
  EXPECT_THAT(refused({.sequence_length = 3, .first = 12, .tokens = 9}),
              HasSubstr("first = 12, tokens = 9: "));
  EXPECT_THAT(refused({.sequence_length = 3, .first = 17}),
              HasSubstr("has 3 tokens from 17 on, and a window takes 4"));
  EXPECT_THAT(refused({.sequence_length = 3, .first = -1}), HasSubstr("first = -1"));
}

TEST_F(TextData, ALoaderBatchesWindows) {
  const TokenWindows windows(numbers(200), {.sequence_length = 8});
  for (const int workers : {0, 2}) {
    data::DataLoader loader(windows, {.batch_size = 5, .num_workers = workers});
    int64_t next = 0;
    for (const auto& [inputs, targets] : loader) {
      EXPECT_EQ(inputs.size(1), 8);
      for (const auto& row : rows_of(inputs)) {
        EXPECT_EQ(row.front(), next);
        next += 8;
      }
      EXPECT_TRUE(at::equal(targets, inputs + 1));
    }
    EXPECT_EQ(next, 192);
  }
}

TEST_F(TextData, WrongWindowsAreRefused) {
  const TokenFile file = numbers(4);
  EXPECT_EQ(test::error_text<UsageError>([&] { TokenWindows(file, {.sequence_length = 4}); }),
            "[text.TokenWindows] " + path("numbers.tokens") +
                " has 4 tokens, and a window takes 5 (sequence_length and the last target). Set a "
                "shorter .sequence_length, or make the file of more text");
  EXPECT_THROW(TokenWindows(file, {.sequence_length = 0}), UsageError);
  EXPECT_THROW(TokenWindows(file, {.sequence_length = 1, .stride = -1}), UsageError);
  const TokenWindows windows(file, {.sequence_length = 3});
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)windows.get(1); }),
              HasSubstr("index 1 is outside the data set of 1 windows"));
}

TEST_F(TextData, LinesAreSamplesOfDifferentLengths) {
  const auto lines = TokenSequences::lines(write("a.txt", "ab\n\nc\nabcdef\n"),
                                           byte_tokenizer(),
                                           {.sequences = {.max_length = 4, .pad = {.pad_id = 7}}});
  EXPECT_EQ(lines.size(), 3);
  EXPECT_THAT(lines.lengths(), ElementsAre(2, 1, 4));
  EXPECT_THAT(row_of(lines.get(0).first), ElementsAre('a', 'b'));
  EXPECT_THAT(row_of(lines.get(0).second), ElementsAre('b', 256));
  EXPECT_THAT(row_of(lines.get(2).second), ElementsAre('b', 'c', 'd', 'e'));
  data::DataLoader loader(lines, {.batch_size = 3});
  int batches = 0;
  for (const auto& [inputs, targets] : loader) {
    EXPECT_EQ(rows_of(inputs), (Rows{{'a', 'b', 7, 7}, {'c', 7, 7, 7}, {'a', 'b', 'c', 'd'}}));
    EXPECT_EQ(rows_of(targets),
              (Rows{{'b', 256, -100, -100}, {256, -100, -100, -100}, {'b', 'c', 'd', 'e'}}));
    ++batches;
  }
  EXPECT_EQ(batches, 1);
}

TEST_F(TextData, LinesWithoutATargetAreLeftOut) {
  const auto lines =
      TokenSequences::lines(write("a.txt", "a\nbc\n"), byte_tokenizer(), {.eos = false});
  EXPECT_EQ(lines.size(), 1);
  EXPECT_EQ(lines.left_out(), 1);
  EXPECT_THAT(row_of(lines.get(0).first), ElementsAre('b'));
}

TEST_F(TextData, DocumentsOfATokenFile) {
  TokenFileWriter out(path("x.tokens"), byte_tokenizer());
  std::vector<int64_t> expected;
  for (int i = 0; i < 3000; ++i) {  // more tokens than one scan takes
    out.append(Ids(static_cast<size_t>(i % 50), 65));
    out.end_document();
    if (i % 50 > 0) {
      expected.push_back(i % 50);
    }
  }
  out.append(Ids{1, 2, 3});
  out.finish();
  expected.push_back(2);
  const auto documents = TokenSequences::documents(TokenFile(path("x.tokens")));
  EXPECT_THAT(documents.lengths(), testing::ElementsAreArray(expected));
  EXPECT_EQ(documents.left_out(), 60);
  EXPECT_THAT(row_of(documents.get(1).second), ElementsAre(65, 256));
  EXPECT_THAT(row_of(documents.get(documents.size() - 1).second), ElementsAre(2, 3));
}

TEST_F(TextData, AFileWithoutAHeaderDoesNotSayWhatEndsADocument) {
  const std::vector<uint16_t> tokens{5, 6, 9, 7, 8, 9};
  const TokenFile file(
      write("train.bin", std::string(reinterpret_cast<const char*>(tokens.data()), 12)));
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)TokenSequences::documents(file); }),
              HasSubstr("train.bin has no header that says which token stands behind a document. "
                        "Give it as end_of_text (GPT-2's is 50256)"));
  EXPECT_THAT(TokenSequences::documents(file, {}, 9).lengths(), ElementsAre(2, 2));
}

TEST_F(TextData, BatchesAreFilledUpToAMultiple) {
  const TokenSequences samples({{1, 2, 3}, {4, 5, 6, 7, 8, 9}},
                               {.pad = {.ignore_index = -1, .multiple_of = 4}});
  data::DataLoader loader(samples, {.batch_size = 2});
  for (const auto& [inputs, targets] : loader) {
    EXPECT_EQ(rows_of(inputs), (Rows{{1, 2, 0, 0, 0, 0, 0, 0}, {4, 5, 6, 7, 8, 0, 0, 0}}));
    EXPECT_EQ(rows_of(targets),
              (Rows{{2, 3, -1, -1, -1, -1, -1, -1}, {5, 6, 7, 8, 9, -1, -1, -1}}));
  }
}

TEST_F(TextData, WrongSamplesAndOptionsAreRefused) {
  EXPECT_THROW(TokenSequences({{1, 2}}, {.max_length = 0}), UsageError);
  const TokenSequences samples({{1, 2}}, {.pad = {.multiple_of = 0}});
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)samples.get(1); }),
              HasSubstr("[text.TokenSequences] index 1 is outside the data set of 1 samples"));
  data::TensorPool pool;
  const std::vector<int64_t> indices{4};
  const data::BatchContext context{.indices = indices, .pool = &pool};
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)samples.collate({}, context); }),
              HasSubstr("[text.PadSequences] multiple_of must be positive, got 0"));
  const auto error = [&](const at::Tensor& inputs, const at::Tensor& targets) {
    return test::error_text<DataError>([&] { (void)PadSequences()({{inputs, targets}}, context); });
  };
  const at::Tensor three = at::ones({3}, at::kLong);
  EXPECT_EQ(error(three, at::ones({2}, at::kLong)),
            "[text.PadSequences] expected inputs and targets [length] Long of one length on the "
            "CPU, got [3] Long and [2] Long (sample 4)");
  EXPECT_THAT(error(at::ones({3}), three), HasSubstr("got [3] Float and [3] Long"));
  EXPECT_THAT(error(three, at::Tensor()), HasSubstr("got [3] Long and nothing"));
}

/// Sample i has i % 37 + 1 inputs, which are all i.
TokenSequences made_sequences(int32_t n) {
  std::vector<Ids> samples;
  for (int32_t i = 0; i < n; ++i) {
    samples.emplace_back(static_cast<size_t>(i % 37 + 2), i);
  }
  return TokenSequences(samples);
}

TEST_F(TextData, BucketsThroughALoaderResumeInTheMiddleWithTheSameBits) {
  const TokenSequences samples = made_sequences(500);
  const auto sampler = [&] {
    return data::BucketBatchSampler(samples.lengths(), {.batch_size = 8, .seed = 3});
  };
  std::vector<at::Tensor> whole;
  data::DataLoader first(samples, sampler(), {.num_workers = 2});
  for (const auto& [inputs, targets] : first) {
    whole.push_back(inputs);
    if (whole.size() < 63) {  // the last batch is short, and of any lengths
      const int64_t shortest = targets.ne(-100).sum(1).min().item<int64_t>();
      EXPECT_LE(inputs.size(1) - shortest, 8);
    }
  }
  ASSERT_EQ(whole.size(), 63U);
  data::DataLoader second(samples, sampler(), {.num_workers = 2});
  size_t taken = 0;
  for ([[maybe_unused]] const auto& batch : second) {
    if (++taken == 20) {
      break;
    }
  }
  const std::string saved = second.state().to_json();
  data::DataLoader third(samples, sampler(), {});
  third.load_state(data::LoaderState::from_json(saved));
  for (const auto& [inputs, targets] : third) {
    ASSERT_LT(taken, whole.size());
    EXPECT_TRUE(at::equal(inputs, whole[taken])) << taken;
    ++taken;
  }
  EXPECT_EQ(taken, whole.size());
  data::DataLoader other(
      samples, data::BucketBatchSampler(samples.lengths(), {.batch_size = 8, .seed = 4}), {});
  EXPECT_THROW(other.load_state(data::LoaderState::from_json(saved)), UsageError);
}

TEST_F(TextData, VirtualRanksHaveTheSameBatchesOnOneAndOnTwoProcesses) {
  const TokenSequences samples = made_sequences(101);
  const auto batches = [&](int processes) {
    std::map<std::pair<int64_t, int64_t>, Rows> all;
    for (int rank = 0; rank < processes; ++rank) {
      const data::BucketBatchSampler sampler(samples.lengths(),
                                             {.batch_size = 4,
                                              .num_replicas = processes,
                                              .rank = rank,
                                              .virtual_ranks = 4,
                                              .seed = 1});
      data::DataLoader loader(samples, sampler, {});
      int64_t number = 0;
      for (const auto& [inputs, targets] : loader) {
        const auto turn = sampler.turns().turn_of(number++, sampler.batches_each());
        all[{sampler.turns().first + turn.leaf, turn.batch}] = rows_of(inputs);
      }
    }
    return all;
  };
  EXPECT_EQ(batches(1).size(), 28U);
  EXPECT_EQ(batches(1), batches(2));
  EXPECT_EQ(batches(1), batches(4));
}

}  // namespace
}  // namespace argosy::text
