/// Who is blamed, with what was written in the store beforehand.
#include "argosy/transport/peer_watch.h"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/rendezvous/stopped_ranks.h"
#include "argosy/transport/farewell.h"

#include "tests/support/looked_at_store.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PeerWatchTest : public ::testing::Test {
 protected:
  static Deadline soon() { return Deadline::after(20s); }

  std::unique_ptr<PeerWatch> watch(int rank, PeerWatchOptions options = {}) {
    options.transport = "test";
    return std::make_unique<PeerWatch>(store_, rank, 4, std::move(options), soon());
  }
  std::unique_ptr<rendezvous::Presence> announce(int rank) {
    return store_->announce("rank/" + std::to_string(rank), soon());
  }

  static std::string message_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      return e.what();
    }
  }
  static std::vector<int> peers_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const CommError& e) {
      return e.peers();
    }
  }

  std::shared_ptr<rendezvous::Store> store_ = rendezvous::in_process_store();
};

TEST_F(PeerWatchTest, WhoLeftBeforeADeathIsBlamedByTheLinkThatLedToIt) {
  announce(1)->leave("done 3 barrier");
  rendezvous::lose(announce(2));
  const auto left = watch(0)->link_broken({.op = "barrier", .seq = 4}, {1, "reset"});
  EXPECT_THAT(peers_of(left), ElementsAre(1));
  EXPECT_THAT(message_of(left), HasSubstr("rank 1 left the group while others still needed it"));
}

TEST_F(PeerWatchTest, ADeathIsBlamedByAnyOtherLink) {
  announce(1)->leave("done 3 barrier");
  rendezvous::lose(announce(2));
  EXPECT_THAT(peers_of(watch(0)->link_broken({.op = "barrier", .seq = 4}, {2, "reset"})),
              ElementsAre(2));
  EXPECT_THAT(peers_of(watch(3)->link_broken({.op = "barrier", .seq = 4}, {-1, "reset"})),
              ElementsAre(2));
}

// All of them waited for rank 3 and give up at the same moment: rank 1 does so between two looks of
// rank 0's last search.
TEST_F(PeerWatchTest, WhoGivesUpAtTheSameMomentIsNotNamed) {
  constexpr int kLooks = 2;  // members and departures
  for (int moment = 0; moment <= kLooks; ++moment) {
    SCOPED_TRACE(testing::Message() << "rank 1 gives up before look " << moment);
    const auto group = rendezvous::in_process_store();
    auto first = group->announce("rank/1", soon());
    const auto second = group->announce("rank/2", soon());
    const auto late = group->announce("rank/3", soon());
    first->note("in 5 barrier");
    second->note("in 5 barrier");
    late->note("done 4 all_reduce");
    constexpr auto kPatience = 200ms;
    int looks = 0;
    store_ = std::make_shared<test::LookedAtStore>(group, [&] {
      if (looks++ == moment) {
        std::this_thread::sleep_for(kPatience);  // so that rank 0's search is its last
        first->leave("victim timeout 3 | rank 1's barrier timed out");
      }
    });
    const auto mine = watch(0, {.patience = kPatience});
    const auto error = mine->timed_out({.op = "barrier", .seq = 5, .timeout = 4s}, {{1, 2, 3}});
    EXPECT_THAT(peers_of(error), ElementsAre(3)) << message_of(error);
  }
}

TEST_F(PeerWatchTest, WhoLeftBeforeTheOperationIsSaidToHaveLeft) {
  announce(1)->leave("done 4 all_reduce");
  announce(2)->leave("done 5 barrier");  // it did its part
  const auto present = announce(3);
  present->note("in 5 barrier");
  const auto error =
      watch(0, {.patience = 20ms})->timed_out({.op = "barrier", .seq = 5, .timeout = 4s}, {{1}});
  EXPECT_THAT(peers_of(error), ElementsAre(1));
  EXPECT_THAT(
      message_of(error),
      HasSubstr("waiting for rank 1 (seq 5); rank 1: it left the group; it was last seen after "
                "all_reduce (seq 4)"));
}

TEST_F(PeerWatchTest, AMismatchIsToldToThoseWhoHadNoPartInIt) {
  const auto third = watch(2);
  const auto first = watch(0)->mismatched({.op = "all_to_all", .seq = 7},
                                          {"rank 1 sends 4 B, but rank 0 wants 8"});
  const auto heard = third->link_broken({.op = "all_to_all", .seq = 7}, {0, "reset"});
  EXPECT_THAT(message_of(heard),
              HasSubstr("rank 0's all_to_all (seq 7): rank 1 sends 4 B, but rank 0 wants 8; "
                        "all_to_all (seq 7) cannot complete"));
  EXPECT_THAT(peers_of(heard), IsEmpty());
}

// Rank 0 came a moment before rank 1's deadline, so it finds a broken link where rank 1 waited in
// vain. That all ranks had come is known; that one sends other sizes is what is left.
TEST_F(PeerWatchTest, WhoGaveUpOnDataSaysSo) {
  const auto mine = watch(0, {.patience = 20ms});
  announce(1)->leave("victim timeout  | rank 1's all_to_all_v timed out: other sizes?");
  const auto heard = mine->link_broken({.op = "all_to_all_v", .seq = 2}, {1, "reset"});
  EXPECT_THAT(message_of(heard),
              HasSubstr("rank 1's all_to_all_v timed out: other sizes?; all_to_all_v (seq 2) "
                        "cannot complete (reset)"));
  EXPECT_THAT(peers_of(heard), IsEmpty());
}

TEST_F(PeerWatchTest, AFailedMessageDoesNotMoveItsRankInTheOrderOfCollectives) {
  const auto mine = watch(0, {.patience = 20s});
  for (int i = 0; i < 3; ++i) {
    Call call{.op = Op::kAllReduce};
    (void)mine->begin(call);
    mine->end();
  }
  auto peer = announce(1);
  auto failed = std::async(std::launch::async, [&] {
    return mine->link_broken({.op = "send", .seq = -1}, {1, "reset"});
  });
  std::string note;
  for (const Deadline deadline = soon(); note.empty() && !deadline.expired();) {
    note = store_->members("rank/0", soon()).at(0).note;
  }
  EXPECT_THAT(note, ::testing::StartsWith("done 2 all_reduce "));
  rendezvous::lose(std::move(peer));
  EXPECT_THAT(peers_of(failed.get()), ElementsAre(1));
}

TEST_F(PeerWatchTest, AnOldMessageIsSuspectThoughOthersComeAndGo) {
  std::promise<void> interrupted;
  const auto mine = watch(0, {.interrupt = [&, once = std::make_shared<std::once_flag>()] {
                            std::call_once(*once, [&] { interrupted.set_value(); });
                          }});
  rendezvous::lose(announce(1));
  const auto old = mine->begin_message();
  auto future = interrupted.get_future();
  const Deadline deadline = Deadline::after(8s);
  while (future.wait_for(20ms) == std::future_status::timeout && !deadline.expired()) {
    mine->end_message(mine->begin_message());
  }
  EXPECT_FALSE(deadline.expired());
  mine->end_message(old);
}

TEST_F(PeerWatchTest, ARankOfTheJobThatNeverCameIsBlamedByItsPlaceInTheGroup) {
  const auto job = rendezvous::in_process_store();
  rendezvous::lose(job->announce("rank/7", soon()));
  rendezvous::lose(job->announce("rank/9", soon()));  // in another group
  const auto mine = watch(0, {.group = "pair", .world_ranks = {3, 7, 2, 8}, .job = job});
  EXPECT_TRUE(mine->someone_is_gone());
  const auto error = mine->link_broken({.op = "connect", .seq = 0}, {-1, "nobody came"});
  EXPECT_THAT(peers_of(error), ElementsAre(1));
  EXPECT_THAT(
      message_of(error),
      HasSubstr("rank 0/4 (world rank 3) group \"pair\" (test): rank 1 (world rank 7) is gone "
                "(its process ended without leaving the group, or does not answer; it had "
                "not come to the group yet)"));
}

TEST_F(PeerWatchTest, ARankMayHaveAnotherNumberInTheStoreOfTheJob) {
  const auto job = rendezvous::in_process_store();
  rendezvous::lose(job->announce("rank/1", soon()));
  const auto mine = watch(
      0, {.group = "pair", .world_ranks = {3, 7, 2, 8}, .job = job, .job_ranks = {3, 7, 2, 8}});
  const auto error = mine->link_broken({.op = "connect", .seq = 0}, {-1, "nobody came"});
  EXPECT_THAT(peers_of(error), ElementsAre(1));
  EXPECT_THAT(message_of(error), HasSubstr("rank 1 (world rank 7) is gone"));
}

TEST_F(PeerWatchTest, DiedIsSaidOnlyWhereTheKernelSaysThatTheProcessEnded) {
  rendezvous::lose(announce(1));
  const auto nobody_knows = watch(0)->link_broken({.op = "barrier", .seq = 4}, {1, "reset"});
  EXPECT_THAT(message_of(nobody_knows),
              AllOf(HasSubstr("rank 1 is gone ("), Not(HasSubstr("died"))));
  const auto runs = watch(2, {.has_ended = [](int) { return false; }});
  EXPECT_THAT(message_of(runs->link_broken({.op = "barrier", .seq = 4}, {1, "reset"})),
              HasSubstr("rank 1 is gone ("));
  int looks = 0;  // a process closes its connections a moment before it has ended
  const auto ended = watch(3, {.has_ended = [&](int rank) { return rank == 1 && ++looks > 2; }});
  EXPECT_THAT(message_of(ended->link_broken({.op = "barrier", .seq = 4}, {1, "reset"})),
              HasSubstr("rank 1 died ("));
}

TEST_F(PeerWatchTest, ARankThatItsLauncherSaysIsStoppedIsNamedSo) {
  const auto whole = rendezvous::in_process_store();
  const auto job = rendezvous::prefix_store(whole, "run/r/0");
  const auto member = job->announce("rank/7", soon());
  ASSERT_NE(rendezvous::tell_stopped(*whole, "r", 7, "stopped by SIGSTOP", soon()), "");
  const PeerWatchOptions options{.world_ranks = {3, 7, 2, 8}, .job = job, .patience = 20ms};
  const auto error =
      watch(0, options)->timed_out({.op = "barrier", .seq = 5, .timeout = 4s}, {{2}});
  EXPECT_THAT(message_of(error), HasSubstr("barrier timed out after 4 s waiting for rank 1"));
  EXPECT_THAT(message_of(error),
              HasSubstr("rank 1 (world rank 7) does not answer: it is stopped by SIGSTOP"));
  EXPECT_THAT(peers_of(error), ElementsAre(1));
  rendezvous::lose(announce(1));  // the store has lost the silent process
  const auto lost = watch(2, options)->link_broken({.op = "barrier", .seq = 4}, {1, "reset"});
  EXPECT_THAT(message_of(lost),
              AllOf(HasSubstr("rank 1 (world rank 7) does not answer: it is stopped by SIGSTOP ("),
                    Not(HasSubstr("died"))));
}

TEST_F(PeerWatchTest, WhoLeavesBecauseAnotherGroupBrokeIsNotNamed) {
  tell_farewell(*store_, 1, {.culprits = {2}, .story = "world rank 2 died"}, soon());
  announce(1)->leave("done 3 barrier");
  rendezvous::lose(announce(2));  // the store notices after that
  const auto told = watch(0)->link_broken({.op = "barrier", .seq = 4}, {1, "reset"});
  EXPECT_THAT(peers_of(told), ElementsAre(2));
  EXPECT_THAT(
      message_of(told),
      HasSubstr("rank 1 left the group, for another of its groups broke: world rank 2 died"));
}

TEST_F(PeerWatchTest, WhoMissesAStoppedRankOfAnotherGroupIsNotNamed) {
  const auto whole = rendezvous::in_process_store();
  const auto job = rendezvous::prefix_store(whole, "run/r/0");
  const auto member = job->announce("rank/9", soon());
  ASSERT_NE(rendezvous::tell_stopped(*whole, "r", 9, "stopped by SIGSTOP", soon()), "");
  const PeerWatchOptions options{.world_ranks = {3, 7, 2, 8}, .job = job, .patience = 20ms};
  const auto late = watch(2, options)->timed_out({.op = "barrier", .seq = 5, .timeout = 4s}, {{3}});
  EXPECT_THAT(peers_of(late), IsEmpty());
  EXPECT_THAT(message_of(late),
              HasSubstr("world rank 9 does not answer: it is stopped by SIGSTOP, and they may wait "
                        "for it in another group"));
}

// The search for the first cause takes a moment, in which the transport closes and a second wait
// ends.
TEST_F(PeerWatchTest, WhoWaitsWhileTheTransportClosesHearsTheFirstCause) {
  rendezvous::lose(announce(1));
  std::unique_ptr<PeerWatch> mine;
  std::future<std::exception_ptr> second;
  store_ = std::make_shared<test::LookedAtStore>(store_, [&] {
    if (!second.valid()) {
      mine->leave();
      second = std::async(std::launch::async, [&] {
        return mine->link_broken({.op = "send", .seq = -1}, {1, "closed"});
      });
      second.wait_for(200ms);  // it ends here only if it does not wait for the first cause
    }
  });
  mine = watch(0);
  const auto first = mine->link_broken({.op = "barrier", .seq = 4}, {1, "reset"});
  EXPECT_THAT(message_of(first), HasSubstr("rank 1 is gone"));
  EXPECT_EQ(message_of(second.get()), message_of(first));
}

TEST_F(PeerWatchTest, WhoWaitsWhenNothingFailedHearsThatTheTransportClosed) {
  const auto mine = watch(0);
  mine->leave();
  EXPECT_THAT(message_of(mine->link_broken({.op = "barrier", .seq = 4}, {1, "closed"})),
              HasSubstr("the transport was closed while barrier (seq 4) waited"));
}

// Rank 1 leaves the group and then the job, as Group::destroy() does, at every moment between the
// looks of one search; it did its part in the operation that rank 0 is in.
TEST_F(PeerWatchTest, WhoLeavesInOrderIsNoStrangerAtAnyMoment) {
  constexpr int kLooks = 3;  // members and departures of the group, departures of the job
  for (int from_group = 0; from_group <= kLooks; ++from_group) {
    for (int from_job = from_group; from_job <= kLooks; ++from_job) {
      SCOPED_TRACE(testing::Message() << "leaves the group after " << from_group
                                      << " looks, the job after " << from_job);
      const auto group = rendezvous::in_process_store();
      const auto job = rendezvous::in_process_store();
      auto in_group = group->announce("rank/1", soon());
      auto in_job = job->announce("rank/1", soon());
      int looks = 0;
      const auto leave = [&] {
        if (looks >= from_group) {
          in_group.reset();
        }
        if (looks >= from_job) {
          in_job.reset();
        }
        ++looks;
      };
      store_ = std::make_shared<test::LookedAtStore>(group, leave);
      const auto mine = watch(0, {.job = std::make_shared<test::LookedAtStore>(job, leave)});
      EXPECT_FALSE(mine->someone_is_gone());
      EXPECT_EQ(looks, kLooks);
    }
  }
}

}  // namespace
}  // namespace argosy::transport
