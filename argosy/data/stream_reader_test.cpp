#include "argosy/data/stream_reader.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/data/ordered_prefetch.h"

namespace argosy::data::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The numbers below n; odd things happen at some of them.
struct Numbers {
  int64_t n = 10;
  std::vector<int64_t> bad{};  // a DataError
  int64_t broken = -1;         // another exception
  std::atomic<int>* inside = nullptr;
  std::atomic<int>* opened = nullptr;

  struct Stream;
  Stream open();
  static int64_t key(int64_t k) { return 100 + k; }
};

struct Numbers::Stream {
  Numbers numbers;
  int64_t at = 0;

  std::optional<int64_t> next() {
    if (numbers.inside != nullptr) {
      EXPECT_EQ(++*numbers.inside, 1) << "two threads in one stream";
      std::this_thread::yield();
      --*numbers.inside;
    }
    if (at >= numbers.n) {
      return std::nullopt;
    }
    const int64_t number = at++;
    if (std::count(numbers.bad.begin(), numbers.bad.end(), number) > 0) {
      throw DataError("test", "torn");
    }
    if (number == numbers.broken) {
      throw std::runtime_error("broken");
    }
    return number;
  }
};

Numbers::Stream Numbers::open() {
  if (opened != nullptr) {
    ++*opened;
  }
  return {*this};
}

/// The same that knows how to leave some out.
struct Skipping : Numbers {
  struct Stream : Numbers::Stream {
    int64_t skip(int64_t count) {
      const int64_t skipped = std::min(count, numbers.n - at);
      at += skipped;
      return skipped;
    }
  };
  Stream open() { return {Numbers::open()}; }
};

struct ReadAll {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> current{-1};
  template <typename Source>
  auto operator()(StreamReader<Source>& reader, int64_t portion) {
    return reader.read(portion, stop, current);
  }
};

TEST(StreamReader, GivesPortionsWithTheirKeysAndAShortLastOne) {
  StreamReader<Numbers> reader({.n = 5}, 0, {.batch_size = 2});
  ReadAll read;
  EXPECT_THAT(read(reader, 0).items, ElementsAre(0, 1));
  const auto second = read(reader, 1);
  EXPECT_THAT(second.items, ElementsAre(2, 3));
  EXPECT_THAT(second.keys, ElementsAre(102, 103));
  EXPECT_THAT(read(reader, 2).items, ElementsAre(4));
  EXPECT_TRUE(read(reader, 3).ended);
  EXPECT_TRUE(read(reader, 4).ended);
}

TEST(StreamReader, DropLastLeavesTheShortOneOut) {
  StreamReader<Numbers> reader({.n = 5}, 0, {.batch_size = 3, .drop_last = true});
  ReadAll read;
  EXPECT_EQ(read(reader, 0).items.size(), 3U);
  const auto last = read(reader, 1);
  EXPECT_THAT(last.items, IsEmpty());
  EXPECT_FALSE(last.ended);
  EXPECT_TRUE(read(reader, 2).ended);
}

template <typename Source>
void expect_resumes(Source source, bool repeat) {
  for (const int64_t first : {0, 1, 3, 4, 9}) {
    const StreamReaderOptions options{.batch_size = 3, .repeat = repeat};
    StreamReader<Source> whole(source, 0, options);
    StreamReader<Source> rest(source, first, options);
    ReadAll read;
    for (int64_t portion = 0; portion < 12; ++portion) {
      const auto expected = read(whole, portion);
      if (portion >= first) {
        const auto got = read(rest, portion);
        EXPECT_EQ(got.items, expected.items) << "from " << first << ", portion " << portion;
        EXPECT_EQ(got.keys, expected.keys);
        EXPECT_EQ(got.ended, expected.ended);
      }
    }
  }
}

TEST(StreamReader, BegunLaterItReadsWhatIsLeft) {
  expect_resumes(Numbers{.n = 10}, false);
  expect_resumes(Skipping{{.n = 10}}, false);
}

TEST(StreamReader, ARepeatedStreamFillsEveryPortion) {
  StreamReader<Numbers> reader({.n = 4}, 0, {.batch_size = 3, .repeat = true});
  ReadAll read;
  EXPECT_THAT(read(reader, 0).items, ElementsAre(0, 1, 2));
  const auto second = read(reader, 1);
  EXPECT_THAT(second.items, ElementsAre(3, 0, 1));
  EXPECT_THAT(second.keys, ElementsAre(103, 100, 101));  // the same samples have the same names
  EXPECT_THAT(read(reader, 2).items, ElementsAre(2, 3, 0));
  expect_resumes(Numbers{.n = 4}, true);
  expect_resumes(Skipping{{.n = 4}}, true);
}

TEST(StreamReader, AnEmptyStreamCannotBeRepeated) {
  StreamReader<Numbers> numbers({.n = 0}, 0, {.repeat = true});
  StreamReader<Skipping> skipping({{.n = 0}}, 2, {.repeat = true});
  ReadAll read;
  EXPECT_THROW(read(numbers, 0), DataError);
  EXPECT_THROW(read(skipping, 2), DataError);
}

TEST(StreamReader, BadItemsCostTheirOwnPlaceWhenTheyAreSkipped) {
  const StreamReaderOptions options{.batch_size = 3, .skip_bad = true};
  const Numbers source{.n = 7, .bad = {1, 3, 4, 5}};
  StreamReader<Numbers> reader(source, 0, options);
  ReadAll read;
  const auto first = read(reader, 0);
  EXPECT_THAT(first.items, ElementsAre(0, 2));
  EXPECT_THAT(first.keys, ElementsAre(100, 102));
  EXPECT_THAT(first.bad.messages, ElementsAre("[test] torn (sample 101)"));
  const auto second = read(reader, 1);
  EXPECT_THAT(second.items, IsEmpty());
  EXPECT_FALSE(second.ended);
  EXPECT_EQ(second.bad.skipped, 3);
  EXPECT_THAT(read(reader, 2).items, ElementsAre(6));
  StreamReader<Numbers> resumed(source, 2, options);
  const auto third = read(resumed, 2);
  EXPECT_THAT(third.items, ElementsAre(6));
  EXPECT_EQ(third.bad.count(), 0);  // those before it were counted by who read them
}

TEST(StreamReader, ADiskThatIsGoneIsNotSkippedForEver) {
  Numbers source{.n = 1000};
  for (int64_t i = 5; i < 1000; ++i) {
    source.bad.push_back(i);
  }
  StreamReader<Numbers> reader(source, 0, {.batch_size = 1000, .skip_bad = true});
  ReadAll read;
  EXPECT_THROW(read(reader, 0), DataError);
  EXPECT_EQ(read.current, 100 + 5 + BadSamples::kMostInARow - 1);
}

TEST(StreamReader, AnErrorEndsTheStreamForLaterPortions) {
  StreamReader<Numbers> reader({.n = 9, .broken = 4}, 0, {.batch_size = 2});
  ReadAll read;
  EXPECT_EQ(read(reader, 0).items.size(), 2U);
  EXPECT_EQ(read(reader, 1).items.size(), 2U);
  EXPECT_THROW(read(reader, 2), std::runtime_error);
  EXPECT_EQ(read.current, 104);
  EXPECT_TRUE(read(reader, 3).ended);
}

class Threads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(StreamReader, Threads, testing::Values(0, 1, 2, 8));

// As the loader uses it: portions in order, by whichever thread is free.
TEST_P(Threads, TakeTurnsAndLoseNothing) {
  std::atomic<int> inside{0};
  std::atomic<int> opened{0};
  for (const int64_t first : {0, 3}) {
    opened = 0;
    StreamReader<Numbers> reader(
        {.n = 50, .inside = &inside, .opened = &opened}, first, {.batch_size = 3});
    OrderedPrefetch<std::vector<int64_t>> prefetch({.threads = GetParam(), .depth = 5});
    prefetch.start(first, 17, [&](int64_t i, const Making& making) {
      return reader.read(i, making.stop, making.sample).items;
    });
    int64_t expected = 3 * first;
    while (const auto items = prefetch.next()) {
      for (const int64_t item : *items) {
        EXPECT_EQ(item, expected++);
      }
    }
    EXPECT_EQ(expected, 50);
    EXPECT_EQ(opened, 1);
  }
}

TEST_P(Threads, AbandonedInTheMiddleNobodyWaitsForATurnForEver) {
  for (int round = 0; round < 50; ++round) {
    StreamReader<Numbers> reader(
        {.n = 1000, .broken = round % 3 == 0 ? 20 : -1}, 0, {.batch_size = 4});
    OrderedPrefetch<std::vector<int64_t>> prefetch({.threads = GetParam(), .depth = 8});
    prefetch.start(0, 250, [&](int64_t i, const Making& making) {
      return reader.read(i, making.stop, making.sample).items;
    });
    for (int taken = 0; taken < round % 5; ++taken) {
      EXPECT_EQ(prefetch.next()->front(), 4 * taken);
    }
    prefetch.cancel();
  }
}

}  // namespace
}  // namespace argosy::data::detail
