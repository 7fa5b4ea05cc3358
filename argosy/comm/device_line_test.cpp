/// A group's operations on a device, without one: what has passed there the test says.
#include "argosy/comm/device_line.h"

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/hooks.h"
#include "argosy/comm/init.h"
#include "argosy/comm/solo_transport.h"

#include "tests/support/error_text.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transport::CollectiveListener;
using transport::DeviceMark;
using transport::Transport;

/// What the device and the threads that wait for it have done.
struct Device {
  std::atomic<int> marked{0};  ///< places so far
  std::atomic<int> passed{0};  ///< places that the device has come to
  std::atomic<int> held{0};    ///< times that a caller's stream was told to wait
};

class Mark final : public DeviceMark {
 public:
  Mark(Device& device, int place) : device_(device), place_(place) {}
  [[nodiscard]] bool has_passed() override { return device_.passed >= place_; }
  void hold_caller() override { ++device_.held; }

 private:
  Device& device_;
  const int place_;
};

class Queue final : public transport::DeviceQueue {
 public:
  explicit Queue(Device& device) : device_(device) {}
  [[nodiscard]] void* handle() const override { return nullptr; }
  [[nodiscard]] std::shared_ptr<void> enter() const override { return nullptr; }
  [[nodiscard]] std::shared_ptr<DeviceMark> mark() override {
    return std::make_shared<Mark>(device_, ++device_.marked);
  }
  [[nodiscard]] std::shared_ptr<DeviceMark> mark_of_caller() const override {
    return std::make_shared<Mark>(device_, 0);
  }
  void follow(DeviceMark& /*place*/) override {}
  [[nodiscard]] std::shared_ptr<void> allocate(int64_t /*bytes*/) override { return nullptr; }
  void copy(void* /*to*/, const void* /*from*/, int64_t /*bytes*/) override {}
  void prepare(const transport::Terms& /*terms*/,
               transport::DType /*dtype*/,
               transport::ReduceOp /*op*/) override {}
  void reduce(const transport::Terms& /*terms*/,
              void* /*destination*/,
              int64_t /*count*/,
              transport::DType /*dtype*/,
              transport::ReduceOp /*op*/) override {}

 private:
  Device& device_;
};

class Queues final : public transport::DeviceQueues {
 public:
  [[nodiscard]] std::unique_ptr<transport::DeviceQueue> make() override { return nullptr; }
  [[nodiscard]] std::string address() const override { return ""; }
  [[nodiscard]] bool wants_exact() const override { return false; }
};

/// Takes barriers, and tells of them when the test says so.
class QueueingTransport final : public SoloTransport {
 public:
  explicit QueueingTransport(Device& device) : queue_(device) {}
  [[nodiscard]] transport::DeviceQueue* queue() override { return &queue_; }
  void listen(std::shared_ptr<CollectiveListener> listener) override {
    next_ = std::move(listener);
  }
  void barrier(Timeout /*timeout*/) override {
    if (closed_) {
      throw CommError("transport.barrier", "the transport was closed", {});
    }
    const std::lock_guard lock(mutex_);
    next_->accepted();
    queued_.push_back(std::exchange(next_, nullptr));
  }
  void check() override {
    if (interrupted) {
      throw CommError("transport.check", "rank 1 died", {.peers = {1}});
    }
  }
  void close() override {
    closed_ = true;
    end_all(std::make_exception_ptr(CommError("transport.barrier", "it was closed", {})));
    if (fails_to_close) {
      throw std::runtime_error("it does not close");
    }
  }
  void end_all(const std::exception_ptr& error) {
    std::vector<std::shared_ptr<CollectiveListener>> all;
    {
      const std::lock_guard lock(mutex_);
      all = std::exchange(queued_, {});
    }
    for (const auto& each : all) {
      each->started();
      each->ended(error);
    }
  }

  std::atomic<bool> interrupted{false};
  bool fails_to_close = false;

 private:
  Queue queue_;
  std::shared_ptr<CollectiveListener> next_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<CollectiveListener>> queued_;
  std::atomic<bool> closed_{false};
};

/// The host's.
class ClosingTransport final : public SoloTransport {
 public:
  explicit ClosingTransport(std::atomic<bool>& closed) : closed_(closed) {}
  void close() override { closed_ = true; }

 private:
  std::atomic<bool>& closed_;
};

class DeviceLines : public ::testing::Test {
 protected:
  DeviceLines()
      : group_(
            make_group(std::make_unique<ClosingTransport>(host_closed_),
                       nullptr,
                       {.timeout = 30s, .make_device_transport = [this](const TransportRequest&) {
                          before_line_();
                          auto made = std::make_unique<QueueingTransport>(device_);
                          transport_ = made.get();
                          return made;
                        }})) {}

  std::shared_ptr<DeviceLine> line() {
    return group_.state().line_of("gpu:0", [] { return std::make_shared<Queues>(); });
  }
  /// `behind`: what the operation does behind the collective.
  Work submit(const std::function<void()>& behind = [] {}) {
    const std::shared_ptr<DeviceLine> on = line();
    return group_.state().submit_on(
        *on, {.op = "barrier"}, {}, [behind](Transport& transport, const Deadline& deadline) {
          transport.barrier(deadline.remaining());
          behind();
        });
  }

  Device device_;
  std::atomic<bool> host_closed_{false};
  std::function<void()> before_line_ = [] {};
  QueueingTransport* transport_ = nullptr;
  Group group_;
};

struct Told final : Hook {
  void on_enqueued(const OperationEvent& e) override { add("enqueued", e); }
  void on_started(const OperationEvent& e) override { add("started", e); }
  void on_ended(const OperationEvent& e) override { add("ended", e); }
  void add(const std::string& what, const OperationEvent& e) {
    words.push_back(what + " " + std::string(e.op) + " " + std::to_string(e.seq));
  }
  std::vector<std::string> words;
};

TEST_F(DeviceLines, QueueAndReturn) {
  const Work work = submit();
  EXPECT_FALSE(work.is_completed());
  work.wait();  // holds the stream, and nothing else
  EXPECT_EQ(device_.held, 1);
  EXPECT_FALSE(work.is_completed());
  EXPECT_THAT(error_text<TimeoutError>([&] { work.wait(1ms); }), HasSubstr("barrier, seq 0"));
  transport_->end_all(nullptr);
  EXPECT_FALSE(work.is_completed()) << "what is copied back behind it has not come";
  device_.passed = 1;
  EXPECT_TRUE(work.is_success());
  work.wait(1s);
  EXPECT_EQ(device_.held, 2);
}

TEST_F(DeviceLines, TellHooksInOrder) {
  (void)line();
  const auto told = std::make_shared<Told>();
  add_hook(group_, told);
  (void)submit();
  (void)submit();
  transport_->end_all(nullptr);
  EXPECT_THAT(told->words,
              ElementsAre("enqueued barrier 0",
                          "enqueued barrier 1",
                          "started barrier 0",
                          "ended barrier 0",
                          "started barrier 1",
                          "ended barrier 1"));
}

TEST_F(DeviceLines, BreakTheGroupByWhatFailsLater) {
  const Work work = submit();
  work.wait();
  group_.check();
  transport_->end_all(
      std::make_exception_ptr(CommError("transport.barrier", "rank 1 died", {.peers = {1}})));
  EXPECT_TRUE(work.is_completed());
  EXPECT_THAT(error_text<CommError>([&] { group_.check(); }), HasSubstr("rank 1 died"));
  EXPECT_THAT(error_text<CommError>([&] { work.wait(); }), HasSubstr("rank 1 died"));
  EXPECT_THAT(error_text<CommError>([&] { submit().wait(); }),
              HasSubstr("broken since an earlier operation failed"));
  EXPECT_THAT(error_text<CommError>(
                  [&] { group_.state().run({.op = "x"}, {}, [](Transport&, const Deadline&) {}); }),
              HasSubstr("rank 1 died"))
      << "operations of the host too";
}

/// As where the end is not told yet, but the device was let go.
TEST_F(DeviceLines, AreNotWholeOnceTheTransportGivesUp) {
  (void)line();
  group_.check();
  transport_->interrupted = true;
  EXPECT_THAT(error_text<CommError>([&] { group_.check(); }), HasSubstr("rank 1 died"));
  EXPECT_THAT(error_text<CommError>([&] { submit().wait(); }),
              HasSubstr("broken since an earlier operation failed"));
}

/// The device may be faster than the thread that queues.
TEST_F(DeviceLines, EndWhenBothTheDeviceAndTheCallerAreDone) {
  const Work good = submit([&] { transport_->end_all(nullptr); });
  EXPECT_TRUE(good.exception() == nullptr);
  good.wait();
  EXPECT_EQ(device_.held, 1) << "what is copied back behind it is waited for";
  const Work bad = submit([&] {
    transport_->end_all(nullptr);
    throw std::runtime_error("no memory for what comes behind");
  });
  EXPECT_THROW(bad.wait(), std::runtime_error);
  EXPECT_THAT(error_text<CommError>([&] { group_.check(); }), HasSubstr("no memory"));
}

/// Memory that is not of libtorch's allocator may be freed with its last tensor.
TEST_F(DeviceLines, KeepWhatAnOperationUsesUntilTheDeviceHasPassedIt) {
  auto memory = std::make_shared<int>();
  const std::weak_ptr<int> seen = memory;
  const Work work = submit([kept = std::move(memory)] {});
  EXPECT_FALSE(seen.expired());
  transport_->end_all(nullptr);
  EXPECT_TRUE(seen.expired());
}

TEST_F(DeviceLines, AnnounceWhatABrokenGroupRefuses) {
  (void)submit();
  transport_->end_all(std::make_exception_ptr(CommError("transport.barrier", "rank 1 died", {})));
  const auto told = std::make_shared<Told>();
  add_hook(group_, told);
  EXPECT_THROW(submit().wait(), CommError);
  EXPECT_THAT(told->words,
              ElementsAre("enqueued barrier -1", "started barrier -1", "ended barrier -1"));
}

/// Ranks that try again would meet what is left of the first time.
TEST_F(DeviceLines, AreTriedOnce) {
  int tries = 0;
  before_line_ = [&] {
    ++tries;
    throw TimeoutError("transport.connect", "rank 1 did not come", {.peers = {1}});
  };
  EXPECT_THROW((void)line(), TimeoutError);
  EXPECT_THAT(error_text<CommError>([&] { group_.check(); }), HasSubstr("rank 1 did not come"));
  EXPECT_THAT(error_text<CommError>([&] { (void)line(); }), HasSubstr("rank 1 did not come"));
  EXPECT_EQ(tries, 1);
}

/// Connecting takes the other ranks: the end of the group must not wait for it.
TEST_F(DeviceLines, AreNotWaitedForWhileTheyConnect) {
  std::promise<void> connecting, go_on;
  before_line_ = [&] {
    connecting.set_value();
    go_on.get_future().wait();
  };
  std::thread user([&] {
    try {
      submit().wait();
      ADD_FAILURE() << "on a group that has ended";
    } catch (const Error&) {
    }
  });
  connecting.get_future().wait();
  group_.state().close(Deadline::after(1s));
  go_on.set_value();
  user.join();
}

TEST_F(DeviceLines, CloseTheHostsTransportWhateverHappens) {
  (void)line();
  transport_->fails_to_close = true;
  group_.destroy();
  EXPECT_TRUE(host_closed_);
}

TEST_F(DeviceLines, SayWhatCouldNotBeQueued) {
  (void)line();
  transport_->close();
  const Work work = submit();
  EXPECT_TRUE(work.is_completed());
  EXPECT_THAT(error_text<CommError>([&] { work.wait(); }), HasSubstr("the transport was closed"));
}

TEST_F(DeviceLines, EndWithTheGroup) {
  const Work work = submit();
  std::thread device([&] {
    std::this_thread::sleep_for(20ms);
    device_.passed = 1;
    transport_->end_all(nullptr);
  });
  group_.destroy();  // waits for what is queued
  EXPECT_TRUE(work.is_success());
  device.join();
  EXPECT_THROW((void)submit(), UsageError);
}

TEST(DeviceLine, IsNoneWhereTheTransportIsNone) {
  int asked = 0;
  const Group group = make_group(std::make_unique<SoloTransport>(),
                                 nullptr,
                                 {.make_device_transport = [&](const TransportRequest&) {
                                   ++asked;
                                   return nullptr;
                                 }});
  const auto queues = [] { return std::make_shared<Queues>(); };
  EXPECT_EQ(group.state().line_of("gpu:0", queues), nullptr);
  EXPECT_EQ(group.state().line_of("gpu:0", queues), nullptr);
  EXPECT_EQ(asked, 1);
  const Group without = make_group(std::make_unique<SoloTransport>(), nullptr, {});
  EXPECT_EQ(without.state().line_of("gpu:0", queues), nullptr);
}

}  // namespace
}  // namespace argosy::comm
