#include "argosy/comm/group_state.h"

#include <fmt/format.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/init.h"
#include "argosy/comm/solo_transport.h"

#include "tests/support/error_text.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transport::Transport;

/// One of two ranks, whose barrier lasts until somebody opens the gate or closes the transport.
class GatedTransport final : public SoloTransport {
 public:
  explicit GatedTransport(std::promise<void>* entered = nullptr) : entered_(entered) {}
  [[nodiscard]] int size() const override { return 2; }
  void barrier(Timeout /*timeout*/) override {
    if (entered_ != nullptr) {
      std::exchange(entered_, nullptr)->set_value();
    }
    closed_future_.wait();
    throw CommError("transport.barrier", "the transport was closed", {});
  }
  void close() override {
    if (!closing_.exchange(true)) {
      closed_.set_value();
    }
  }

 private:
  std::promise<void>* entered_;
  std::atomic<bool> closing_{false};
  std::promise<void> closed_;
  std::shared_future<void> closed_future_ = closed_.get_future().share();
};

Group gated(std::promise<void>* entered = nullptr, std::chrono::milliseconds timeout = 30s) {
  return make_group(
      std::make_unique<GatedTransport>(entered), nullptr, {.name = "pair", .timeout = timeout});
}
Group solo() {
  return make_group(std::make_unique<SoloTransport>(), nullptr, {.name = "world", .timeout = 30s});
}

void nothing(Transport&, const Deadline&) {}
void barrier(Transport& transport, const Deadline& deadline) {
  transport.barrier(deadline.remaining());
}
void fail(Transport&, const Deadline&) {
  throw CommError("transport.all_reduce", "rank 1 died", {.peers = {1}});
}

TEST(GroupState, AGroupOfOneNeedsNoThread) {
  const Group group = solo();
  std::thread::id ran;
  const Work work = group.state().submit(
      {.op = "x"}, {}, [&](Transport&, const Deadline&) { ran = std::this_thread::get_id(); });
  EXPECT_TRUE(work.is_success());
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(GroupState, FirstFailureBreaksTheGroupAndStaysTheCause) {
  const Group group = solo();
  GroupState& state = group.state();
  state.run({.op = "all_reduce"}, {}, nothing);
  const std::string first = error_text<std::exception>(
      [&] { state.run({.op = "all_reduce", .dtype = "f32", .bytes = 24}, {}, fail); });
  EXPECT_EQ(first,
            "[comm.all_reduce] rank 0/1 group \"world\": rank 1 died. In the flight record: "
            "all_reduce seq 1, 24 B f32; last completed seq 0.");
  const Work later = state.submit({.op = "broadcast"}, {}, nothing);
  EXPECT_FALSE(later.is_success());
  try {
    later.wait();
    FAIL();
  } catch (const CommError& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("[comm.broadcast] rank 0/1 group \"world\": the group is broken"),
                      HasSubstr("rank 1 died")));
    EXPECT_THAT(e.peers(), ElementsAre(1));
    EXPECT_EQ(e.context().seq, 2);
    EXPECT_EQ(e.context().op, "broadcast");
  }
}

TEST(GroupState, TimeoutStaysATimeout) {
  const Group group = solo();
  EXPECT_THROW(group.state().run({.op = "barrier"},
                                 {},
                                 [](Transport&, const Deadline&) {
                                   throw TimeoutError("transport.barrier", "late", {.peers = {2}});
                                 }),
               TimeoutError);
}

TEST(GroupState, ZeroTimeoutMeansTheGroups) {
  const Group group = solo();
  std::chrono::milliseconds own{};
  std::chrono::milliseconds groups{};
  group.state().run({.op = "x"}, 5s, [&](Transport&, const Deadline& d) { own = d.remaining(); });
  group.state().run(
      {.op = "x"}, 0s, [&](Transport&, const Deadline& d) { groups = d.remaining(); });
  EXPECT_LE(own, 5s);
  EXPECT_GT(groups, 20s);
}

TEST(GroupState, TheBodyIsGoneBeforeTheWorkCompletes) {
  const Group group = gated();
  auto tensor = std::make_shared<int>(1);  // stands for what an operation keeps alive
  std::promise<void> gate;
  const Work work = group.state().submit(
      {.op = "x"}, {}, [tensor, go = gate.get_future().share()](Transport&, const Deadline&) {
        go.wait();
      });
  EXPECT_EQ(tensor.use_count(), 2);
  gate.set_value();
  work.wait();
  EXPECT_EQ(tensor.use_count(), 1);
}

TEST(GroupState, DestroyTwiceAndUseAfter) {
  Group group = solo();
  group.destroy();
  group.destroy();
  EXPECT_EQ(group.rank(), 0);
  EXPECT_THAT(
      error_text<std::exception>([&] { group.state().run({.op = "barrier"}, {}, nothing); }),
      HasSubstr("[comm.barrier] group \"world\" was destroyed"));
  EXPECT_THROW((void)group.state().submit({.op = "x"}, {}, nothing), UsageError);
  EXPECT_THROW((void)group.split({}), UsageError);
  EXPECT_THROW((void)group.new_group({0}), UsageError);
}

TEST(GroupState, DestroyWaitsForWhatIsQueued) {
  Group group = gated();
  std::promise<void> gate;
  std::vector<Work> works;
  works.push_back(group.state().submit(
      {.op = "x"}, {}, [go = gate.get_future().share()](Transport&, const Deadline&) {
        go.wait();
      }));
  works.push_back(group.state().submit({.op = "x"}, {}, nothing));
  std::thread opener([&] { gate.set_value(); });
  group.destroy();
  opener.join();
  EXPECT_TRUE(works[0].is_success());
  EXPECT_TRUE(works[1].is_success());
}

TEST(GroupState, DestroyAbortsWhatOutlivesTheTimeout) {
  Group group = gated(nullptr, 20ms);
  const Work work = group.state().submit({.op = "barrier"}, {}, barrier);
  group.destroy();
  EXPECT_THAT(error_text<std::exception>([&] { work.wait(); }),
              HasSubstr("the transport was closed"));
}

TEST(GroupState, AnExceptionOnTheWayOutDoesNotWaitForOperations) {
  std::promise<void> entered;
  Work work;
  const auto start = std::chrono::steady_clock::now();
  try {
    const Group group = gated(&entered);
    work = group.state().submit({.op = "barrier"}, {}, barrier);
    entered.get_future().wait();
    throw std::runtime_error("the user's own");
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "the user's own");
  }
  EXPECT_TRUE(work.is_completed());
  EXPECT_LT(std::chrono::steady_clock::now() - start, GroupState::kGrace);
}

TEST(GroupState, EmptyGroupSaysSo) {
  const Group group;
  EXPECT_FALSE(group.valid());
  EXPECT_THAT(error_text<std::exception>([&] { (void)group.rank(); }),
              HasSubstr("this group is empty"));
}

TEST(GroupState, NewGroupChecksItsRanks) {
  const Group group = gated();
  EXPECT_THAT(error_text<std::exception>([&] { (void)group.new_group({}); }),
              HasSubstr("no ranks given"));
  EXPECT_THAT(error_text<std::exception>([&] {
                (void)group.new_group({0, 2});
              }),
              HasSubstr("rank 2 is not in the group: expected 0 to 1"));
  EXPECT_THAT(error_text<std::exception>([&] {
                (void)group.new_group({0, 0});
              }),
              HasSubstr("rank 0 given twice"));
  EXPECT_THAT(error_text<std::exception>([&] {
                (void)group.new_group({0, 1});
              }),
              HasSubstr("cannot make others"));
}

class CountingHook final : public Hook {
 public:
  void on_enqueued(const OperationEvent& event) override { note("enqueued", event); }
  void on_started(const OperationEvent& event) override { note("started", event); }
  void on_ended(const OperationEvent& event) override {
    note(event.error.empty() ? "ended" : "failed", event);
    throw std::runtime_error("hooks may not, but this one does");
  }
  std::vector<std::string> seen;

 private:
  void note(const char* what, const OperationEvent& event) {
    seen.push_back(fmt::format("{} {} {} {}", what, event.group, event.op, event.seq));
  }
};

TEST(Hooks, SeeEachStepOfAGroupAndOfItsSubGroups) {
  const Group group = solo();
  const auto hook = std::make_shared<CountingHook>();
  add_hook(group, hook);
  const Group child = group.new_group({0});
  group.state().run({.op = "a"}, {}, nothing);
  child.state().run({.op = "b"}, {}, nothing);
  EXPECT_THROW(group.state().run({.op = "c"}, {}, fail), CommError);
  remove_hook(group, hook);
  child.state().run({.op = "d"}, {}, nothing);
  EXPECT_THAT(hook->seen,
              ElementsAre("enqueued world a 0",
                          "started world a 0",
                          "ended world a 0",
                          "enqueued world.0 b 0",
                          "started world.0 b 0",
                          "ended world.0 b 0",
                          "enqueued world c 1",
                          "started world c 1",
                          "failed world c 1"));
}

}  // namespace
}  // namespace argosy::comm
