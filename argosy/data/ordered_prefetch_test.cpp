#include "argosy/data/ordered_prefetch.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"

namespace argosy::data {
namespace {

using namespace std::chrono_literals;

/// Lets a test hold threads inside make() until it says so.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    ASSERT_TRUE(wait_until(changed_, lock, Deadline::after(20s), [&] { return open_; }));
  }
  void wait_for_arrivals(int n) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(wait_until(changed_, lock, Deadline::after(20s), [&] { return waiting_ >= n; }));
  }
  int arrivals() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

template <typename T>
std::vector<T> drain(OrderedPrefetch<T>& prefetch) {
  std::vector<T> all;
  while (std::optional<T> value = prefetch.next()) {
    all.push_back(std::move(*value));
  }
  return all;
}

class PrefetchThreads : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OrderedPrefetch, PrefetchThreads, testing::Values(0, 1, 2, 8));

TEST_P(PrefetchThreads, GiveResultsInOrderFromAnyStart) {
  OrderedPrefetch<int64_t> prefetch({.threads = GetParam(), .depth = 3});
  for (const int64_t first : {0, 7, 99, 100}) {
    prefetch.start(first, 100, [](int64_t i, const Making&) { return i * i; });
    const std::vector<int64_t> all = drain(prefetch);
    ASSERT_EQ(all.size(), static_cast<size_t>(100 - first));
    for (int64_t i = first; i < 100; ++i) {
      EXPECT_EQ(all[i - first], i * i);
    }
    EXPECT_EQ(prefetch.next(), std::nullopt);
  }
}

TEST(OrderedPrefetch, NextIfReadyNeitherWaitsNorThrowsNorSkips) {
  Gate second;
  OrderedPrefetch<int64_t> prefetch({.threads = 1, .depth = 4});
  EXPECT_EQ(prefetch.next_if_ready(), std::nullopt);  // not started
  prefetch.start(0, 4, [&](int64_t i, const Making&) {
    if (i == 1) {
      second.pass();
    }
    if (i == 2) {
      throw std::runtime_error("two");
    }
    return i;
  });
  second.wait_for_arrivals(1);  // then result 0 lies ready
  EXPECT_EQ(prefetch.next_if_ready(), 0);
  EXPECT_EQ(prefetch.next_if_ready(), std::nullopt);
  second.open();
  EXPECT_EQ(prefetch.next(), 1);
  EXPECT_EQ(prefetch.next_if_ready(), std::nullopt);  // not ready, or an error
  EXPECT_THROW((void)prefetch.next(), std::runtime_error);
  EXPECT_EQ(prefetch.next(), 3);
  EXPECT_EQ(prefetch.next_if_ready(), std::nullopt);
}

TEST_P(PrefetchThreads, NextIfReadyGivesTheSameResults) {
  OrderedPrefetch<int64_t> prefetch({.threads = GetParam(), .depth = 3});
  prefetch.start(5, 300, [](int64_t i, const Making&) { return i; });
  int64_t expected = 5;
  while (const std::optional<int64_t> value = prefetch.next()) {
    EXPECT_EQ(*value, expected++);
    if (const std::optional<int64_t> other = prefetch.next_if_ready()) {
      EXPECT_GT(GetParam(), 0);
      EXPECT_EQ(*other, expected++);
    }
  }
  EXPECT_EQ(expected, 300);
}

TEST_P(PrefetchThreads, AnExceptionComesInItsPlaceAndTheRestAfterIt) {
  OrderedPrefetch<int64_t> prefetch({.threads = GetParam(), .depth = 4});
  prefetch.start(0, 20, [](int64_t i, const Making&) -> int64_t {
    if (i % 5 == 3) {
      throw std::runtime_error(std::to_string(i));
    }
    return i;
  });
  for (int64_t i = 0; i < 20; ++i) {
    try {
      EXPECT_EQ(prefetch.next(), i);
      EXPECT_NE(i % 5, 3);
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::to_string(i));
    }
  }
  EXPECT_EQ(prefetch.next(), std::nullopt);
}

TEST_P(PrefetchThreads, AbandonedInTheMiddleAHundredTimes) {
  std::atomic<int> alive{0};
  struct Counted {
    explicit Counted(std::atomic<int>& n) : n(&n) { ++n; }
    ~Counted() { --*n; }
    std::atomic<int>* n;
  };
  {
    OrderedPrefetch<std::unique_ptr<Counted>> prefetch({.threads = GetParam(), .depth = 4});
    for (int round = 0; round < 100; ++round) {
      prefetch.start(
          0, 50, [&](int64_t, const Making&) { return std::make_unique<Counted>(alive); });
      for (int i = 0; i < round % 7; ++i) {
        EXPECT_NE(prefetch.next(), std::nullopt);
      }
      if (round % 2 == 0) {
        prefetch.cancel();
        EXPECT_EQ(alive, 0);  // nothing left behind, nothing in the making
        EXPECT_EQ(prefetch.next(), std::nullopt);
      }
    }
  }
  EXPECT_EQ(alive, 0);
}

TEST_P(PrefetchThreads, DestroyedBeforeDuringAndAfterWork) {
  for (int taken = 0; taken <= 10; ++taken) {
    OrderedPrefetch<int64_t> prefetch({.threads = GetParam(), .depth = 2});
    if (taken > 0) {
      prefetch.start(0, 9, [](int64_t i, const Making&) { return i; });
    }
    for (int i = 1; i < taken; ++i) {
      EXPECT_EQ(prefetch.next(), i - 1);
    }
  }
}

TEST(OrderedPrefetch, NeverRunsFurtherAheadThanItsDepth) {
  std::atomic<int64_t> made{0};
  OrderedPrefetch<int64_t> prefetch({.threads = 8, .depth = 3});
  int64_t taken = 0;
  std::atomic<int64_t> limit{3};
  prefetch.start(0, 200, [&](int64_t i, const Making&) {
    EXPECT_LT(i, limit.load());  // raised before next() makes room
    ++made;
    return i;
  });
  while (true) {
    ++limit;
    if (!prefetch.next()) {
      break;
    }
    ++taken;
  }
  EXPECT_EQ(taken, 200);
  EXPECT_EQ(made, 200);
}

TEST(OrderedPrefetch, AllThreadsWorkAtOnce) {
  Gate gate;
  OrderedPrefetch<int64_t> prefetch({.threads = 4, .depth = 4});
  prefetch.start(0, 4, [&](int64_t i, const Making&) {
    gate.pass();
    return i;
  });
  gate.wait_for_arrivals(4);
  gate.open();
  EXPECT_EQ(drain(prefetch).size(), 4U);
}

TEST(OrderedPrefetch, TheFirstIsGivenOutLastWhenItIsSlow) {
  Gate gate;
  OrderedPrefetch<int64_t> prefetch({.threads = 2, .depth = 3});
  std::atomic<int> quick{0};
  prefetch.start(0, 3, [&](int64_t i, const Making&) {
    if (i == 0) {
      gate.pass();
    } else if (++quick == 2) {
      gate.open();  // only when both others are done
    }
    return i;
  });
  EXPECT_EQ(drain(prefetch), (std::vector<int64_t>{0, 1, 2}));
}

TEST(OrderedPrefetch, CancelTellsRunningWorkAndWaitsForIt) {
  Gate gate;
  std::atomic<int> inside{0};
  OrderedPrefetch<int64_t> prefetch({.threads = 2, .depth = 2});
  prefetch.start(0, 100, [&](int64_t i, const Making& making) {
    ++inside;
    gate.pass();
    while (!making.stop) {
      std::this_thread::yield();
    }
    --inside;
    return i;
  });
  gate.wait_for_arrivals(2);
  gate.open();
  prefetch.cancel();
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(gate.arrivals(), 2);  // nothing new was begun
}

TEST(OrderedPrefetch, ThreadsAreNamedAndStayForTheNextStart) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  OrderedPrefetch<std::string> prefetch({.threads = 2, .depth = 2, .name = "loader"});
  for (int epoch = 0; epoch < 5; ++epoch) {
    Gate gate;
    prefetch.start(0, 2, [&](int64_t, const Making&) {
      gate.pass();
      char name[16] = {};
      pthread_getname_np(pthread_self(), name, sizeof(name));
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
      return std::string(name);
    });
    gate.wait_for_arrivals(2);
    gate.open();
    const std::vector<std::string> names = drain(prefetch);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()),
              (std::set<std::string>{"loader/0", "loader/1"}));
  }
  EXPECT_EQ(ids.size(), 2U);
}

TEST(OrderedPrefetch, AStallIsSaidInTheLog) {
  testing::internal::CaptureStderr();
  Gate gate;
  OrderedPrefetch<int64_t> prefetch(
      {.threads = 1, .depth = 1, .name = "DataLoader", .report_stall_after = 1ms});
  prefetch.start(7, 8, [&](int64_t i, const Making& making) {
    // Long enough for one report, however slow the machine: the consumer is known to wait.
    const Deadline end = Deadline::after(200ms);
    while (!end.expired() && !making.stop) {
      std::this_thread::yield();
    }
    return i;
  });
  EXPECT_EQ(prefetch.next(), 7);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("still waiting for batch 7"),
            std::string::npos);
}

/// A thread that hangs in sample 17 until the test lets it go.
class Stuck {
 public:
  explicit Stuck(OrderedPrefetch<int64_t>& prefetch) {
    prefetch.start(0, 4, [this](int64_t i, const Making& making) {
      making.sample = 17;
      if (i == 1) {
        gate_.pass();
      }
      return i;
    });
  }
  void wait_until_inside() { gate_.wait_for_arrivals(1); }
  void let_go() { gate_.open(); }

 private:
  Gate gate_;
};

TEST(OrderedPrefetch, ALateResultIsADataErrorThatNamesThreadAndSample) {
  OrderedPrefetch<int64_t> prefetch(
      {.threads = 1, .depth = 2, .name = "DataLoader", .timeout = 20ms});
  Stuck stuck(prefetch);
  stuck.wait_until_inside();
  EXPECT_EQ(prefetch.next(), 0);
  try {
    (void)prefetch.next();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().index, 17);
    const std::string what = error.what();
    EXPECT_EQ(what.find("[data.DataLoader] waited for batch 1 for "), 0U) << what;
    EXPECT_NE(what.find("thread 0 is inside the data set's get()"), std::string::npos) << what;
  }
  prefetch.cancel();  // does not wait
  EXPECT_EQ(prefetch.next(), std::nullopt);
  EXPECT_THROW(prefetch.start(0, 1, [](int64_t i, const Making&) { return i; }), DataError);
  stuck.let_go();
  // The thread comes back in its own time; only then can a new start succeed.
  const Deadline end = Deadline::after(20s);
  while (!end.expired()) {
    try {
      prefetch.start(5, 8, [](int64_t i, const Making&) { return i; });
      break;
    } catch (const DataError&) {
    }
  }
  EXPECT_EQ(drain(prefetch), (std::vector<int64_t>{5, 6, 7}));
}

TEST(OrderedPrefetch, ALateResultDoesNotBlameTheSampleOfAnEarlierOne) {
  Gate gate;
  OrderedPrefetch<int64_t> prefetch({.threads = 1, .depth = 2, .timeout = 10ms});
  prefetch.start(0, 2, [&](int64_t i, const Making& making) {
    if (i == 0) {
      making.sample = 17;
    } else {
      gate.pass();
    }
    return i;
  });
  gate.wait_for_arrivals(1);
  EXPECT_EQ(prefetch.next(), 0);
  try {
    (void)prefetch.next();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().index, -1);
  }
  gate.open();
}

TEST(OrderedPrefetch, ALateResultMayStillBeWaitedFor) {
  OrderedPrefetch<int64_t> prefetch({.threads = 1, .depth = 2, .timeout = 1ms});
  Stuck stuck(prefetch);
  stuck.wait_until_inside();
  EXPECT_EQ(prefetch.next(), 0);
  EXPECT_THROW((void)prefetch.next(), DataError);
  stuck.let_go();
  std::vector<int64_t> rest;
  while (rest.size() < 3) {
    try {
      rest.push_back(*prefetch.next());
    } catch (const DataError&) {  // one millisecond is short
    }
  }
  EXPECT_EQ(rest, (std::vector<int64_t>{1, 2, 3}));
}

TEST(OrderedPrefetch, TheDestructorWaitsForALateThread) {
  std::atomic<bool> inside{false};
  std::atomic<bool> returned{false};
  {
    OrderedPrefetch<int64_t> prefetch({.threads = 1, .depth = 1, .timeout = 5ms});
    prefetch.start(0, 1, [&](int64_t i, const Making& making) {
      inside = true;
      while (!making.stop) {
        std::this_thread::yield();
      }
      returned = true;
      return i;
    });
    EXPECT_THROW((void)prefetch.next(), DataError);
  }
  EXPECT_EQ(inside, returned);
}

TEST(OrderedPrefetch, ThreadsAreInitialisedOnceEachBeforeTheyWork) {
  std::mutex mutex;
  std::multiset<int> initialised;
  OrderedPrefetch<int> prefetch({.threads = 3, .depth = 3, .thread_init = [&](int thread) {
                                   const std::lock_guard lock(mutex);
                                   initialised.insert(thread);
                                 }});
  for (int round = 0; round < 2; ++round) {
    prefetch.start(0, 9, [&](int64_t, const Making& making) {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(initialised.count(making.thread), 1U);
      return making.thread;
    });
    EXPECT_EQ(drain(prefetch).size(), 9U);
  }
  EXPECT_EQ(initialised, (std::multiset<int>{0, 1, 2}));
  OrderedPrefetch<int> alone({.thread_init = [](int) { FAIL() << "there is no thread"; }});
  alone.start(0, 1, [](int64_t, const Making& making) { return making.thread; });
  EXPECT_EQ(drain(alone), (std::vector<int>{-1}));
}

TEST(OrderedPrefetch, AThreadInitThatHangsMeetsTheTimeout) {
  Gate gate;
  OrderedPrefetch<int> prefetch(
      {.threads = 2, .depth = 2, .timeout = 10ms, .thread_init = [&](int) { gate.pass(); }});
  const auto start = [&] { prefetch.start(0, 3, [](int64_t, const Making&) { return 0; }); };
  for (int round = 0; round < 2; ++round) {
    try {
      start();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("thread_init has not returned"), std::string::npos)
          << error.what();
    }
  }
  gate.open();
}

TEST(OrderedPrefetch, AThreadThatCannotBeInitialisedEndsEveryStart) {
  OrderedPrefetch<int> prefetch({.threads = 4, .depth = 4, .thread_init = [](int thread) {
                                   if (thread % 2 == 1) {
                                     throw std::runtime_error("no device");
                                   }
                                 }});
  for (int round = 0; round < 2; ++round) {
    try {
      prefetch.start(0, 9, [](int64_t, const Making&) { return 0; });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const UsageError& error) {
      EXPECT_STREQ(error.what(), "[data.loader] thread_init threw on thread 1: no device");
    }
  }
}

TEST(OrderedPrefetch, OptionsAreChecked) {
  EXPECT_THROW(OrderedPrefetch<int>({.threads = -1}), UsageError);
  EXPECT_THROW(OrderedPrefetch<int>({.threads = 1, .depth = 0}), UsageError);
}

}  // namespace
}  // namespace argosy::data
