#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/bounded_queue.h"
#include "argosy/base/catalogue.h"
#include "argosy/base/check.h"
#include "argosy/base/deadline.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/result.h"
#include "argosy/base/strings.h"
#include "argosy/base/thread_pool.h"
#include "argosy/base/wall_clock.h"

#include "tests/support/temp_dir.h"

namespace argosy {
namespace {

using namespace std::chrono_literals;

TEST(Error, SaysWhereWhatAndPlace) {
  const DataError error("data.idx", "truncated: expected 16 bytes, got 3", {"a.gz", 13, 7});
  EXPECT_STREQ(error.what(),
               "[data.idx] a.gz: truncated: expected 16 bytes, got 3 (sample 7) (at byte 13)");
  EXPECT_EQ(error.place().offset, 13);
}

TEST(Error, AnIndexIsAddedWhereItIsKnown) {
  const DataError error = DataError("data.get", "blank", {.path = "", .offset = 5}).with_index(7);
  EXPECT_STREQ(error.what(), "[data.get] blank (sample 7) (at byte 5)");
  EXPECT_EQ(error.place().index, 7);
  EXPECT_EQ(error.place().offset, 5);
}

TEST(Error, ANoteIsAddedWhereTheIndexIsNotKnown) {
  const DataError error =
      DataError("data.get", "blank", {.path = "a.jpg", .offset = 5}).with_note("samples 1, 2");
  EXPECT_STREQ(error.what(), "[data.get] a.jpg: blank (samples 1, 2) (at byte 5)");
}

TEST(Error, TimeoutIsACommErrorThatNamesRanks) {
  try {
    throw TimeoutError("comm.barrier", "waited 1 s", {.op = "barrier", .peers = {2, 5}});
  } catch (const CommError& error) {
    EXPECT_EQ(error.peers(), (std::vector<int>{2, 5}));
  }
}

TEST(Error, ErrnoInWords) {
  EXPECT_EQ(errno_message(ENOENT), "No such file or directory (ENOENT)");
  EXPECT_EQ(errno_message(EMFILE),
            "Too many open files (EMFILE; the limit: ulimit -n, at most ulimit -Hn)");
  EXPECT_EQ(errno_message(123456), "unknown error 123456");
}

TEST(Check, ThrowsUsageErrorWithMessage) {
  const int n = -1;
  try {
    ARGOSY_CHECK(n > 0, "data.DataLoader", "batch_size must be positive, got {}", n);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "[data.DataLoader] batch_size must be positive, got -1");
  }
}

TEST(Result, CarriesTheChainOfCauses) {
  auto inner = []() -> Result<int> { return Failure::from_errno("open x", ENOENT); };
  auto outer = [&]() -> Result<int> {
    Result<int> r = inner();
    if (!r.ok()) {
      return std::move(r).failure().because("load");
    }
    return *r + 1;
  };
  EXPECT_EQ(outer().failure().error_number, ENOENT);
  EXPECT_THROW(
      {
        try {
          outer().or_throw<RendezvousError>("r.op");
        } catch (const RendezvousError& e) {
          EXPECT_STREQ(e.what(), "[r.op] load: open x: No such file or directory (ENOENT)");
          throw;
        }
      },
      RendezvousError);
}

TEST(Deadline, ForeverDoesNotOverflow) {
  EXPECT_FALSE(Deadline::after(std::chrono::milliseconds::max()).expired());
  EXPECT_TRUE(Deadline::after(0ms).expired());
  EXPECT_EQ(Deadline::after(-5ms).remaining(), 0ms);
  EXPECT_GT(Deadline::never().remaining(), 24h);
}

void set_env(const char* name, const char* value) {
  ASSERT_EQ(setenv(name, value, 1), 0);  // NOLINT(concurrency-mt-unsafe): one thread
}

TEST(Env, ReadsNumbersAndNamesTheVariable) {
  set_env("ARGOSY_TEST_INT", "12");
  EXPECT_EQ(env::get_int("ARGOSY_TEST_INT", 0, 100), 12);
  set_env("ARGOSY_TEST_INT", "12x");
  EXPECT_THROW(
      {
        try {
          (void)env::get_int("ARGOSY_TEST_INT", 0, 100);
        } catch (const ConfigError& error) {
          EXPECT_STREQ(error.what(),
                       "[base.env] ARGOSY_TEST_INT: expected a whole number from 0 to 100, got "
                       "\"12x\". Correct or unset it.");
          throw;
        }
      },
      ConfigError);
  set_env("ARGOSY_TEST_INT", "");
  EXPECT_EQ(env::get_int("ARGOSY_TEST_INT"), std::nullopt);
  set_env("ARGOSY_TEST_BOOL", "On");
  EXPECT_EQ(env::get_bool("ARGOSY_TEST_BOOL"), true);
}

TEST(Strings, RangesReadLikeAPersonWritesThem) {
  EXPECT_EQ(strings::ranges({}), "");
  EXPECT_EQ(strings::ranges({3}), "3");
  EXPECT_EQ(strings::ranges({0, 1}), "0, 1");
  EXPECT_EQ(strings::ranges({0, 2, 5, 6, 7}), "0, 2, 5-7");
}

TEST(Strings, ParseIntTakesTheWholeTextOnly) {
  EXPECT_EQ(strings::parse_int("-42"), -42);
  EXPECT_EQ(strings::parse_int("42 "), std::nullopt);
  EXPECT_EQ(strings::parse_int(""), std::nullopt);
  EXPECT_EQ(strings::parse_int("9223372036854775808"), std::nullopt);
}

TEST(Strings, ParseDoubleTakesTheWholeTextOnly) {
  EXPECT_EQ(strings::parse_double("-0.25"), -0.25);
  EXPECT_EQ(strings::parse_double("1e-3"), 1e-3);
  EXPECT_EQ(strings::parse_double("3s"), std::nullopt);
  EXPECT_EQ(strings::parse_double(" 3"), std::nullopt);
  EXPECT_EQ(strings::parse_double(""), std::nullopt);
  EXPECT_EQ(strings::parse_double("1e999"), std::nullopt);
}

TEST(Strings, ColumnsAreCharacters) {
  EXPECT_EQ(strings::columns("эпоха 1"), 7U);
  EXPECT_EQ(strings::first_columns("эпоха 1", 3), "эпо");
  EXPECT_EQ(strings::first_columns("эпоха 1", 7), "эпоха 1");
  EXPECT_EQ(strings::first_columns("abc", 0), "");
  EXPECT_EQ(strings::first_columns("abc\x1b[K", 3), "abc\x1b[K");  // takes no room
  EXPECT_EQ(strings::first_columns("\x1b[1;31mabcd\x1b[0m", 3), "\x1b[1;31mabc");
  EXPECT_EQ(strings::first_columns("\x1b[38:2:9:9:9mэп\x1b[0m", 1), "\x1b[38:2:9:9:9mэ");
  EXPECT_EQ(strings::first_columns("\x1b[3эпо", 2), "\x1b[3эп");  // no sequence, cut short
  EXPECT_EQ(strings::columns("\x1b[1;31mэпоха\x1b[0m 1\x1b[K"), 7U);
}

TEST(Strings, ClosestForgivesOneSlipButNotAnotherWord) {
  const std::vector<std::string> names{"nproc_per_node", "nnodes", "log_dir"};
  EXPECT_EQ(strings::closest("nproc_per_nod", names), "nproc_per_node");
  EXPECT_EQ(strings::closest("nndoes", names), "nnodes");
  EXPECT_EQ(strings::closest("lgo_dir", names), "log_dir");
  EXPECT_EQ(strings::closest("banana", names), std::nullopt);
  EXPECT_EQ(strings::closest("", names), std::nullopt);
}

TEST(Strings, ConstantTimeComparisonIsAnEquality) {
  EXPECT_TRUE(strings::equal_constant_time("secret", "secret"));
  EXPECT_TRUE(strings::equal_constant_time("", ""));
  EXPECT_FALSE(strings::equal_constant_time("secret", "secreT"));
  EXPECT_FALSE(strings::equal_constant_time("aa", "aaaa"));
  EXPECT_FALSE(strings::equal_constant_time("", "a"));
  EXPECT_FALSE(strings::equal_constant_time("a", ""));
}

TEST(Strings, SplitKeepsEmptyPieces) {
  EXPECT_EQ(strings::split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(strings::trim("  x y\n"), "x y");
}

TEST(BoundedQueue, BlocksAtCapacityAndKeepsOrder) {
  BoundedQueue<int> queue(2);
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(queue.push(i));
    }
    queue.close();
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(queue.size(), 2U);
    EXPECT_EQ(queue.pop(), i);
  }
  EXPECT_EQ(queue.pop(), std::nullopt);
  producer.join();
}

TEST(BoundedQueue, CloseWakesABlockedProducer) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.push(1));
  std::thread producer([&] { EXPECT_FALSE(queue.push(2)); });
  queue.close();
  producer.join();
  EXPECT_EQ(queue.pop(), 1);
}

TEST(BoundedQueue, PopGivesUpAtItsDeadline) {
  BoundedQueue<int> queue(1);
  EXPECT_EQ(queue.pop(Deadline::after(1ms)), std::nullopt);
}

TEST(ThreadPool, RethrowsWhatATaskThrew) {
  ThreadPool pool(2, "test");
  auto bad = pool.submit([]() -> int { throw std::runtime_error("no"); });
  auto good = pool.submit([] { return 7; });
  EXPECT_THROW(bad.get(), std::runtime_error);
  EXPECT_EQ(good.get(), 7);
}

TEST(ThreadPool, DestructorRunsWhatWaits) {
  std::atomic<int> done{0};
  {
    ThreadPool pool(1, "test");
    for (int i = 0; i < 50; ++i) {
      pool.submit([&] { ++done; });
    }
  }
  EXPECT_EQ(done, 50);
}

TEST(ThreadPool, ForEachCallsEachOnceAndReturnsWhenAllHaveEnded) {
  ThreadPool pool(3, "test");
  for (const size_t count : {0U, 1U, 2U, 1000U}) {
    std::vector<std::atomic<int>> calls(count);
    pool.for_each(count, [&](size_t i) { ++calls[i]; });
    for (const std::atomic<int>& one : calls) {
      EXPECT_EQ(one, 1);
    }
  }
}

TEST(ThreadPool, ForEachWaitsForNoThreadThatIsBusy) {
  ThreadPool pool(1, "test");
  std::promise<void> leave;
  pool.submit([&] { leave.get_future().wait(); });
  int calls = 0;
  pool.for_each(10, [&](size_t) { ++calls; });
  EXPECT_EQ(calls, 10);
  leave.set_value();
}

TEST(ThreadPool, ForEachRethrowsWhatATaskThrewWhenNoneRunsAnyMore) {
  ThreadPool pool(3, "test");
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> running = 0;
    EXPECT_THROW(pool.for_each(50,
                               [&](size_t i) {
                                 ++running;
                                 if (i == 20) {
                                   --running;
                                   throw std::runtime_error("no");
                                 }
                                 std::this_thread::sleep_for(std::chrono::microseconds(20));
                                 --running;
                               }),
                 std::runtime_error);
    EXPECT_EQ(running, 0);
  }
}

TEST(WallClock, KeepsOrderAndDistance) {
  const auto start = std::chrono::steady_clock::now();
  const auto before = std::chrono::system_clock::now();
  const WallClock wall;
  for (int64_t ms = -2000; ms < 2000; ++ms) {
    EXPECT_EQ(wall.us(start + std::chrono::milliseconds(ms)) - wall.us(start), 1000 * ms);
  }
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(before.time_since_epoch()).count();
  EXPECT_NEAR(static_cast<double>(wall.us(start) - us), 0, 60e6) << "since 1970";
}

TEST(Catalogue, IsThatOfTheInstalledArgosyWithoutALauncher) {
  const test::TempDir prefix;
  const std::filesystem::path docs = prefix.path() / "share/doc/argosy";
  std::filesystem::create_directories(docs / "docs/guides");
  std::filesystem::create_directories(prefix.path() / "bin");
  std::ofstream(docs / "docs/guides/errors.md") << "# Errors";
  std::ofstream(prefix.path() / "bin/argosy") << "#!/bin/sh";
  ::unsetenv("ARGOSY_DOCS");  // NOLINT(concurrency-mt-unsafe): one thread; read once, below
  ::setenv("PATH", ("/no/such/folder::" + (prefix.path() / "bin").string()).c_str(), 1);  // NOLINT
  EXPECT_EQ(catalogue_entry("[room.op] no"), docs.string() + "/docs/guides/errors.md#room.op");
}

TEST(Catalogue, NamesTheEntryOfAMessage) {
  ::unsetenv("ARGOSY_DOCS");  // NOLINT(concurrency-mt-unsafe): one thread; read once, below
  EXPECT_EQ(catalogue_entry(ConfigError("vision.idx", "no").what()),
            "docs/guides/errors.md#vision.idx");
  EXPECT_EQ(catalogue_entry("[argosy] no"), "docs/guides/errors.md#argosy");
  EXPECT_EQ(catalogue_entry("no room"), "");
  EXPECT_EQ(catalogue_entry("[no end"), "");
}

}  // namespace
}  // namespace argosy
