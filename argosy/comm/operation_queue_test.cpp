#include "argosy/comm/operation_queue.h"

#include <future>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/solo_transport.h"
#include "argosy/comm/waiter_pool.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// Operations that note their own end, and a gate that holds some back.
class OperationQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<Operation> op(std::function<void()> body = [] {}) {
    auto operation = std::make_shared<Operation>();
    operation->timeout = 30s;
    operation->body = [body = std::move(body)](transport::Transport&, const Deadline&) { body(); };
    return operation;
  }
  std::shared_ptr<Operation> gated() {
    return op([gate = gate_.get_future().share()] { gate.wait(); });
  }
  void open() { gate_.set_value(); }

  std::promise<void> gate_;
  std::mutex mutex_;
  std::vector<int64_t> ran_;
  std::vector<std::thread::id> threads_;
  SoloTransport nothing_;
  OperationQueue queue_{[this](Operation& operation) {
                          operation.body(nothing_, Deadline::never());
                          {
                            const std::lock_guard lock(mutex_);
                            ran_.push_back(operation.seq);
                            threads_.push_back(std::this_thread::get_id());
                          }
                          operation.body = nullptr;
                        },
                        [](Operation& operation) {
                          if (operation.then) {
                            operation.then(operation, nullptr);
                          }
                          operation.complete(nullptr);
                        }};
};

TEST_F(OperationQueueTest, RunsInTheOrderOfPushes) {
  std::vector<OperationQueue::Item> items = {gated()};
  for (int i = 0; i < 9; ++i) {
    items.push_back(op());
  }
  for (const auto& item : items) {
    ASSERT_TRUE(queue_.push(item));
  }
  EXPECT_EQ(queue_.pending(), 10);
  open();
  items.back()->wait();
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(OperationQueueTest, AnIdleQueueRunsInTheCallersThread) {
  ASSERT_TRUE(queue_.run(op()));
  EXPECT_THAT(threads_, ElementsAre(std::this_thread::get_id()));
}

TEST_F(OperationQueueTest, RunWaitsForWhatIsAhead) {
  const auto first = gated();
  ASSERT_TRUE(queue_.push(first));
  std::thread caller([&] { EXPECT_TRUE(queue_.run(op())); });
  while (queue_.pending() < 2) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(first->is_completed());
  open();
  caller.join();
  EXPECT_THAT(ran_, ElementsAre(0, 1));
}

TEST_F(OperationQueueTest, WhoHearsOfAnEndMayWaitForFurtherOnes) {
  const std::function<OperationQueue::Item(int)> nested = [&](int depth) {
    auto item = op();
    item->then = [&, depth](const Operation&, const std::exception_ptr&) {
      if (depth == 0) {
        return;
      }
      const OperationQueue::Item pushed = nested(depth - 1);
      ASSERT_TRUE(queue_.push(pushed));
      pushed->wait();
      ASSERT_TRUE(queue_.run(nested(depth - 1)));
    };
    return item;
  };
  ASSERT_TRUE(queue_.run(nested(3)));
  const auto last = nested(3);
  ASSERT_TRUE(queue_.push(last));
  ASSERT_TRUE(queue_.push(op()));
  last->wait();
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  EXPECT_EQ(ran_.size(), 31U);  // 15 for each, and the one
}

TEST_F(OperationQueueTest, TheNextOnesRunWhileAnEndIsTold) {
  for (const int held : {1, 1, 3}) {  // at first there is one thread
    std::promise<void> gate;
    const std::shared_future<void> opened = gate.get_future().share();
    std::vector<OperationQueue::Item> first;
    for (int i = 0; i < held; ++i) {
      first.push_back(op());
      first.back()->then = [opened](const Operation&, const std::exception_ptr&) { opened.wait(); };
      ASSERT_TRUE(queue_.push(first.back()));
    }
    const auto last = op();
    ASSERT_TRUE(queue_.push(last));
    last->wait();
    EXPECT_FALSE(first.front()->is_completed());
    EXPECT_GE(queue_.pending(), held);
    EXPECT_FALSE(queue_.drain(Deadline::after(1ms)));
    gate.set_value();
    EXPECT_TRUE(queue_.drain(Deadline::after(30s)));
    EXPECT_EQ(queue_.pending(), 0);
  }
  EXPECT_THAT(ran_, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(OperationQueueTest, CallsOfHearersKeepTheOrderOfTheirOperations) {
  std::vector<OperationQueue::Item> called(6);
  std::vector<OperationQueue::Item> told;
  for (size_t i = 0; i < 3; ++i) {
    told.push_back(op());
    told.back()->then = [&, i](const Operation&, const std::exception_ptr&) {
      std::this_thread::sleep_for(i == 0 ? 60ms : 0ms);  // longer than anybody waits for it
      for (size_t j = 2 * i; j < 2 * i + 2; ++j) {
        called[j] = op();
        called[j]->timeout = 30s;
        ASSERT_TRUE(queue_.push(called[j]));
      }
    };
    ASSERT_TRUE(queue_.push(told.back()));
  }
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  for (size_t j = 1; j < called.size(); ++j) {
    EXPECT_LT(called[j - 1]->seq, called[j]->seq) << j;
  }
}

TEST_F(OperationQueueTest, AHearerThatWaitsForALaterOnesCallIsAnError) {
  std::promise<void> refused;
  const auto first = op();
  first->then = [&](const Operation&, const std::exception_ptr&) { refused.get_future().wait(); };
  const auto second = op();
  second->then = [&](const Operation&, const std::exception_ptr&) {
    const auto inner = op();
    inner->timeout = 20ms;
    EXPECT_THROW((void)queue_.push(inner), TimeoutError);
    refused.set_value();
  };
  ASSERT_TRUE(queue_.push(first));
  ASSERT_TRUE(queue_.push(second));
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  EXPECT_THAT(ran_, ElementsAre(0, 1));
}

TEST_F(OperationQueueTest, HearersThatTakeLongHaveFewThreads) {
  std::mutex one_at_a_time;
  std::set<std::thread::id> heard_in;
  for (int i = 0; i < 30; ++i) {
    const auto item = op();
    item->then = [&](const Operation&, const std::exception_ptr&) {
      const std::lock_guard lock(one_at_a_time);
      heard_in.insert(std::this_thread::get_id());
      std::this_thread::sleep_for(7ms);
    };
    ASSERT_TRUE(queue_.push(item));
  }
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  EXPECT_LE(heard_in.size(), 4U);
  EXPECT_EQ(ran_.size(), 30U);
}

TEST_F(OperationQueueTest, WhatAHearerWaitsForRunsBehindManyOthers) {
  const auto inner = op();
  std::promise<void> over;
  const std::shared_future<void> ended = over.get_future().share();
  for (int i = 0; i < 12; ++i) {
    const auto item = op();
    item->then = [&, ended, i](const Operation&, const std::exception_ptr&) {
      if (i > 0) {
        ended.wait();
        return;
      }
      std::this_thread::sleep_for(40ms);
      ASSERT_TRUE(queue_.push(inner));
      inner->wait();
      over.set_value();
    };
    ASSERT_TRUE(queue_.push(item));
  }
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  EXPECT_EQ(inner->seq, 12);
}

TEST_F(OperationQueueTest, ManyThreadsRunOneAtATimeInSeqOrder) {
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE((t + i) % 2 == 0 ? queue_.run(op()) : queue_.push(op()));
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  ASSERT_TRUE(queue_.drain(Deadline::after(30s)));
  ASSERT_EQ(ran_.size(), 400U);
  for (size_t i = 0; i < ran_.size(); ++i) {
    ASSERT_EQ(ran_[i], static_cast<int64_t>(i));
  }
}

TEST_F(OperationQueueTest, ObserversRunWithoutALockAndBeforeTheOperation) {
  std::vector<int64_t> announced;
  queue_.set_on_enqueued([&](Operation& operation) {
    EXPECT_GE(queue_.pending(), 1);  // would wait for ever under the queue's lock
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(ran_.size(), announced.size());  // the one that is announced has not run
    announced.push_back(operation.seq);
  });
  ASSERT_TRUE(queue_.run(op()));
  const auto second = op();
  ASSERT_TRUE(queue_.push(second));
  second->wait();
  ASSERT_TRUE(queue_.run(op()));
  EXPECT_THAT(announced, ElementsAre(0, 1, 2));
}

TEST_F(OperationQueueTest, DrainGivesUpAtItsDeadline) {
  const auto item = gated();
  ASSERT_TRUE(queue_.push(item));
  EXPECT_FALSE(queue_.drain(Deadline::after(1ms)));
  open();
  EXPECT_TRUE(queue_.drain(Deadline::after(30s)));
}

TEST_F(OperationQueueTest, StopRunsWhatIsQueuedAndRefusesTheRest) {
  const auto first = gated();
  const auto second = op();
  ASSERT_TRUE(queue_.push(first));
  ASSERT_TRUE(queue_.push(second));
  std::thread stopper([&] { queue_.stop(); });
  open();
  stopper.join();
  EXPECT_TRUE(second->is_completed());
  EXPECT_FALSE(queue_.push(op()));
  EXPECT_FALSE(queue_.run(op()));
  queue_.stop();
}

TEST_F(OperationQueueTest, StopWaitsForARunInAnotherThread) {
  std::promise<void> entered;
  std::thread caller([&] {
    EXPECT_TRUE(queue_.run(op([&, gate = gate_.get_future().share()] {
      entered.set_value();
      gate.wait();
    })));
  });
  entered.get_future().wait();
  // Opens the gate when stop() has returned, which it must not do; else when it waited for a while.
  std::promise<void> stopped;
  std::thread opener([&, early = stopped.get_future()] {
    EXPECT_EQ(early.wait_for(50ms), std::future_status::timeout);
    open();
  });
  queue_.stop();
  stopped.set_value();
  EXPECT_EQ(ran_.size(), 1U);
  caller.join();
  opener.join();
}

TEST(WaiterPool, TasksDoNotWaitForEachOther) {
  WaiterPool pool;
  std::promise<void> first;
  std::promise<void> second;
  std::promise<void> done;
  // The first task can only end after the second, the second after the third.
  ASSERT_TRUE(pool.run([&] {
    first.get_future().wait();
    done.set_value();
  }));
  ASSERT_TRUE(pool.run([&] {
    second.get_future().wait();
    first.set_value();
  }));
  ASSERT_TRUE(pool.run([&] { second.set_value(); }));
  EXPECT_EQ(done.get_future().wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(pool.drain(Deadline::after(30s)));
}

TEST(WaiterPool, StopFinishesTheTasksAndRefusesOthers) {
  WaiterPool pool;
  std::atomic<int> ran{0};
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(pool.run([&] { ++ran; }));
  }
  pool.stop();
  EXPECT_EQ(ran, 20);
  EXPECT_FALSE(pool.run([] {}));
}

}  // namespace
}  // namespace argosy::comm
