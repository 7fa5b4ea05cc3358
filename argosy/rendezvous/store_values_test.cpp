// Values, counters and waiting: one suite over every store.
#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/limits.h"
#include "argosy/rendezvous/store_kinds.h"

#include "tests/support/error_text.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StoreValues : public testing::TestWithParam<StoreKind> {
 protected:
  std::function<std::shared_ptr<Store>()> party_ = GetParam().world();
  std::shared_ptr<Store> store_ = party_();
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreValues, testing::ValuesIn(store_kinds()), kind_name);

TEST_P(StoreValues, ReadsBackWhatAnotherPartySet) {
  party_()->set("addr/0", "10.0.0.1:29500", soon());
  EXPECT_EQ(store_->get("addr/0", soon()), "10.0.0.1:29500");
  party_()->set("addr/0", "", soon());
  EXPECT_EQ(store_->get("addr/0", soon()), "");
}

TEST_P(StoreValues, TellsTheTimeOfItsHost) {
  const int64_t before = local_time_us();
  const int64_t there = prefix_store(store_, "p")->time_us(soon());
  EXPECT_GE(there, before);
  EXPECT_LE(there, local_time_us());
}

TEST_P(StoreValues, TakesAnyKeyBytesButNulAndNewline) {
  const std::vector<std::string> odd = {".",
                                        "..",
                                        "/",
                                        "a/../b",
                                        "~",
                                        "%2F",
                                        "Grüße, 世界",
                                        "\x01\x7f\xff",
                                        " spaced\tkey ",
                                        std::string(300, 'k'),
                                        std::string(300, 'k') + "2",
                                        std::string(3000, '/')};
  for (const std::string& key : odd) {
    store_->set(key, "value of " + key, soon());
  }
  for (const std::string& key : odd) {
    EXPECT_EQ(store_->get(key, soon()), "value of " + key) << key;
  }
  std::vector<std::string> sorted = odd;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(store_->keys("", soon()), sorted);
}

TEST_P(StoreValues, RefusesMalformedKeysInEveryOperation) {
  for (const std::string& bad :
       {std::string(), std::string("a\nb"), std::string("a\0b", 3), std::string(5000, 'k')}) {
    EXPECT_THROW(store_->set(bad, "", soon()), UsageError);
    EXPECT_THROW((void)store_->get(bad, soon()), UsageError);
    EXPECT_THROW(store_->wait({"fine", bad}, soon()), UsageError);
    EXPECT_THROW(store_->add(bad, 1, soon()), UsageError);
    EXPECT_THROW(store_->compare_set(bad, "", "", soon()), UsageError);
    EXPECT_THROW((void)store_->check({bad}, soon()), UsageError);
    EXPECT_THROW(store_->remove(bad, soon()), UsageError);
    EXPECT_THROW((void)store_->announce(bad, soon()), UsageError);
  }
  EXPECT_THAT(test::error_text<UsageError>([&] { store_->set("a\nb", "", soon()); }),
              HasSubstr("[rendezvous.set] malformed key: expected no NUL and no newline, got 0x0a "
                        "at byte 1 (after \"a\")"));
}

TEST_P(StoreValues, CarriesBinaryValuesUpToSixteenMebibytes) {
  std::string value(kLargestValueBytes, '\0');
  for (size_t i = 0; i < value.size(); i += 4099) {
    value[i] = static_cast<char>(i % 251);
  }
  store_->set("big", value, soon());
  EXPECT_TRUE(party_()->get("big", soon()) == value);  // EXPECT_EQ would print it
  value += 'x';
  EXPECT_THAT(test::error_text<UsageError>([&] { store_->set("big", value, soon()); }),
              HasSubstr("big\" too large: expected at most 16777216 bytes (16 MiB), got 16777217"));
  EXPECT_THROW(store_->compare_set("other", "", value, soon()), UsageError);
}

TEST_P(StoreValues, GetWaitsForAnotherPartysSet) {
  auto value = std::async(std::launch::async, [&] { return party_()->get("late", soon()); });
  EXPECT_EQ(value.wait_for(milliseconds(30)), std::future_status::timeout);
  store_->set("late", "here", soon());
  EXPECT_EQ(value.get(), "here");
}

TEST_P(StoreValues, WaitReturnsOnlyWhenAllKeysExist) {
  store_->set("a", "1", soon());
  store_->set("c", "1", soon());
  auto done = std::async(std::launch::async, [&] { party_()->wait({"a", "b", "c"}, soon()); });
  EXPECT_EQ(done.wait_for(milliseconds(30)), std::future_status::timeout);
  store_->remove("a", soon());  // existed when last looked at, and does not count any more
  store_->set("b", "1", soon());
  EXPECT_EQ(done.wait_for(milliseconds(30)), std::future_status::timeout);
  store_->set("a", "2", soon());
  done.get();
  store_->wait({}, soon());
}

TEST_P(StoreValues, ManyWaitersAreAllWoken) {
  constexpr int kWaiters = 16;
  std::vector<std::future<std::string>> waiters;
  waiters.reserve(kWaiters);
  for (int i = 0; i < kWaiters; ++i) {
    waiters.push_back(
        std::async(std::launch::async, [party = party_()] { return party->get("go", soon()); }));
  }
  store_->set("go", "now", soon());
  for (auto& waiter : waiters) {
    EXPECT_EQ(waiter.get(), "now");
  }
}

TEST_P(StoreValues, TimeoutNamesTheMissingKeysAndTheStore) {
  store_->set("rank/0", "", soon());
  const auto start = Deadline::Clock::now();
  try {
    store_->wait({"rank/0", "rank/1", "rank/2"}, Deadline::after(milliseconds(120)));
    FAIL() << "the keys were never set";
  } catch (const TimeoutError& error) {
    EXPECT_THAT(
        error.what(),
        AllOf(HasSubstr("[rendezvous.wait] timed out after "), HasSubstr(" s waiting for keys ")));
    EXPECT_THAT(error.what(), HasSubstr("rank/1\""));
    EXPECT_THAT(error.what(), HasSubstr("rank/2\""));
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("rank/0\"")));
    EXPECT_EQ(error.context().op, "store.wait");
  }
  EXPECT_GE(Deadline::Clock::now() - start, milliseconds(115));
  EXPECT_THAT(test::error_text<TimeoutError>(
                  [&] { (void)store_->get("never", Deadline::after(milliseconds(1))); }),
              HasSubstr("never\""));
  // The waiter is gone: the key may come later and nothing happens.
  store_->set("never", "x", soon());
  EXPECT_EQ(store_->get("never", soon()), "x");
}

TEST_P(StoreValues, AddIsAtomicOverThreads) {
  constexpr int kThreads = 8;
  constexpr int kAdds = 40;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([party = party_()] {
      for (int i = 0; i < kAdds; ++i) {
        party->add("counter", 3, soon());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(store_->add("counter", 0, soon()), int64_t{3} * kThreads * kAdds);
  EXPECT_EQ(store_->get("counter", soon()), "960");
  EXPECT_EQ(store_->add("counter", -1000, soon()), -40);
}

TEST_P(StoreValues, AddRefusesWhatIsNoNumberAndWhatOverflows) {
  store_->set("text", "abc", soon());
  EXPECT_THAT(test::error_text<UsageError>([&] { store_->add("text", 1, soon()); }),
              HasSubstr("is no counter: expected a decimal number, got \"abc\""));
  store_->set("full", std::to_string(INT64_MAX), soon());
  EXPECT_THAT(test::error_text<UsageError>([&] { store_->add("full", 1, soon()); }),
              HasSubstr("does not fit 64 bits"));
  EXPECT_EQ(store_->get("full", soon()), std::to_string(INT64_MAX));
}

TEST_P(StoreValues, CompareSetWritesOnlyWhatItExpected) {
  EXPECT_EQ(store_->compare_set("k", "something", "x", soon()), "");
  EXPECT_FALSE(store_->check({"k"}, soon()));
  EXPECT_EQ(store_->compare_set("k", "", "first", soon()), "first");
  EXPECT_EQ(store_->compare_set("k", "", "second", soon()), "first");
  EXPECT_EQ(store_->compare_set("k", "first", "third", soon()), "third");
  EXPECT_EQ(store_->get("k", soon()), "third");
}

TEST_P(StoreValues, CompareSetLetsExactlyOneThreadWin) {
  constexpr int kThreads = 8;
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t, party = party_()] {
      const std::string mine = "thread " + std::to_string(t);
      winners += party->compare_set("winner", "", mine, soon()) == mine ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreValues, ChecksRemovesAndLists) {
  store_->set("b/2", "", soon());
  store_->set("b/1", "", soon());
  store_->set("a", "", soon());
  EXPECT_TRUE(store_->check({"a", "b/1"}, soon()));
  EXPECT_FALSE(store_->check({"a", "b/3"}, soon()));
  EXPECT_TRUE(store_->check({}, soon()));
  EXPECT_THAT(store_->keys("", soon()), ElementsAre("a", "b/1", "b/2"));
  EXPECT_THAT(store_->keys("b/", soon()), ElementsAre("b/1", "b/2"));
  EXPECT_THAT(store_->keys("c", soon()), IsEmpty());
  EXPECT_TRUE(store_->remove("b/1", soon()));
  EXPECT_FALSE(store_->remove("b/1", soon()));
  EXPECT_THAT(party_()->keys("b", soon()), ElementsAre("b/2"));
}

}  // namespace
}  // namespace argosy::rendezvous
