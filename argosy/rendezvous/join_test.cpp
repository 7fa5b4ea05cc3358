// resolve(), open_store() and wait_for_ranks(), with ranks as threads.
#include "argosy/rendezvous/join.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/addresses.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/rendezvous/limits.h"
#include "argosy/rendezvous/store_kinds.h"

#include "tests/support/error_text.h"
#include "tests/support/owned_port.h"

namespace argosy::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::error_text;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = MeetingPlace::Kind;

class WaitForRanks : public testing::TestWithParam<StoreKind> {
 protected:
  std::function<std::shared_ptr<Store>()> party_ = GetParam().world();
};

INSTANTIATE_TEST_SUITE_P(Stores, WaitForRanks, testing::ValuesIn(store_kinds()), kind_name);

TEST(FirstWaitForRanks, GrowsWithTheirNumber) {
  EXPECT_EQ(first_wait_for_ranks(2), std::chrono::milliseconds(100));
  EXPECT_EQ(first_wait_for_ranks(256), std::chrono::milliseconds(1024));
  EXPECT_EQ(first_wait_for_ranks(100000), kLongestWaitForRanks);
}

TEST_P(WaitForRanks, AllMeetThoughOneIsLate) {
  constexpr int kRanks = 5;
  std::vector<std::future<std::unique_ptr<Presence>>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::async(std::launch::async, [rank, store = party_()] {
      if (rank == 3) {
        EXPECT_TRUE(eventually([&] { return store->keys("join/", soon()).size() == kRanks - 1; }));
      }
      return wait_for_ranks(*store, rank, kRanks, soon());
    }));
  }
  std::vector<std::unique_ptr<Presence>> present;
  for (auto& rank : ranks) {
    present.push_back(rank.get());
  }
  EXPECT_EQ(party_()->members("rank/", soon()).size(), size_t{kRanks});
}

TEST_P(WaitForRanks, TimeoutListsTheMissing) {
  std::vector<std::future<void>> ranks;
  for (const int rank : {0, 1, 3}) {
    ranks.push_back(std::async(std::launch::async, [rank, store = party_()] {
      (void)wait_for_ranks(*store, rank, 6, Deadline::after(milliseconds(600)));
    }));
  }
  for (auto& rank : ranks) {
    try {
      rank.get();
      ADD_FAILURE() << "met without all";
    } catch (const TimeoutError& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("[rendezvous.join] waiting for 3 of 6 ranks: 2, 4, 5 ("),
                        HasSubstr(" s of 0.6 s)")));
      EXPECT_THAT(error.peers(), ElementsAre(2, 4, 5));
    }
  }
}

TEST_P(WaitForRanks, ADoubledRankIsNamedToAll) {
  auto waiting = std::async(std::launch::async, [store = party_()] {
    return error_text<RendezvousError>([&] { (void)wait_for_ranks(*store, 1, 3, soon()); });
  });
  auto look = party_();
  ASSERT_TRUE(eventually([&] { return look->check({"join/1"}, soon()); }));
  const std::string refusal =
      error_text<RendezvousError>([&] { (void)wait_for_ranks(*party_(), 1, 3, soon()); });
  const std::string pid = "pid " + std::to_string(getpid());
  EXPECT_THAT(refusal,
              AllOf(HasSubstr("[rendezvous.join] rank 1 is taken by host "),
                    HasSubstr(pid + ", and host "),
                    HasSubstr("two jobs meet")));
  EXPECT_EQ(waiting.get(), refusal) << "the one who came first must not wait for the deadline";
}

TEST_P(WaitForRanks, DifferentWorldSizesAreRefused) {
  std::vector<std::future<std::string>> ranks;
  for (const int rank : {0, 1}) {
    ranks.push_back(std::async(std::launch::async, [rank, store = party_()] {
      return error_text<RendezvousError>(
          [&] { (void)wait_for_ranks(*store, rank, rank == 0 ? 3 : 2, soon()); });
    }));
  }
  const std::string zero = ranks[0].get();
  const std::string one = ranks[1].get();
  EXPECT_THAT(one, AllOf(HasSubstr("rank 0 ("), HasSubstr("expects 3 ranks, rank 1 (")));
  EXPECT_THAT(zero, AllOf(HasSubstr("rank 1 ("), HasSubstr("expects ")));
}

TEST_P(WaitForRanks, ADepartureBeforeAllMetEndsTheWait) {
  auto store = party_();
  auto early = store->announce("rank/0", soon());
  auto waiting = std::async(std::launch::async, [store = party_()] {
    return error_text<RendezvousError>([&] { (void)wait_for_ranks(*store, 1, 3, soon()); });
  });
  early->leave("no licence");
  EXPECT_THAT(waiting.get(),
              AllOf(HasSubstr("[rendezvous.join] rank 0 ("),
                    HasSubstr("left before all 3 ranks had met (it said: no licence)")));
  EXPECT_THAT(error_text<RendezvousError>([&] { (void)wait_for_ranks(*store, 2, 3, soon()); }),
              HasSubstr("left over from a former run"));
}

TEST_P(WaitForRanks, ADeadRankMayBeReplacedAfterAllHaveMet) {
  const auto replace = [&] {
    return wait_for_ranks(*party_(), 1, 3, soon(), "", DeadRank::kMayBeReplaced);
  };
  auto early = std::async(std::launch::async, [store = party_()] {
    return wait_for_ranks(*store, 1, 3, soon(), "", DeadRank::kMayBeReplaced);
  });
  auto second = std::async(std::launch::async,
                           [store = party_()] { return wait_for_ranks(*store, 2, 3, soon()); });
  const auto first = wait_for_ranks(*party_(), 0, 3, soon());
  const auto other = second.get();
  auto one = early.get();
  // Its successor may come before the store knows that it is gone.
  auto successor = std::async(std::launch::async, replace);
  EXPECT_EQ(successor.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  one->leave("");
  EXPECT_NE(successor.get(), nullptr);
  EXPECT_EQ(party_()->departures("rank/1", soon()).size(), 2U) << "one more: the successor's end";
  EXPECT_THAT(error_text<RendezvousError>([&] { (void)wait_for_ranks(*party_(), 1, 3, soon()); }),
              HasSubstr("left over from a former run"));
  EXPECT_NE(replace(), nullptr);
}

TEST_P(WaitForRanks, AFormerRunIsNeverJoined) {
  const auto meet = [&] {
    auto other = std::async(std::launch::async,
                            [store = party_()] { return wait_for_ranks(*store, 1, 2, soon()); });
    auto presence = wait_for_ranks(*party_(), 0, 2, soon());
    other.get()->leave("done");
  };
  meet();  // all registrations stay behind: the next one finds everybody "there" at once
  for (const int rank : {1, 0}) {
    EXPECT_THAT(
        error_text<RendezvousError>([&] { (void)wait_for_ranks(*party_(), rank, 2, soon()); }),
        AllOf(HasSubstr("[rendezvous.join] rank 1 (host "),
              HasSubstr("left before all 2 ranks had met (it said: done)"),
              HasSubstr("left over from a former run: then delete it")));
  }
}

TEST(WaitForRanksOfTwoJobs, RunIdsMustAgree) {
  auto store = in_process_store();
  auto other = std::async(std::launch::async, [&] {
    return error_text<RendezvousError>([&] { (void)wait_for_ranks(*store, 1, 2, soon(), "b"); });
  });
  auto presence = wait_for_ranks(*store, 0, 2, soon(), "a");
  EXPECT_THAT(other.get(), HasSubstr("is of run \"a\", rank 1"));
}

TEST(Resolve, PutsOptionQueryAndEnvironmentInOrder) {
  JobEnvironment job;
  EXPECT_EQ(resolve({}, job).kind, Kind::kAlone);
  job.rank = 1;
  job.world_size = 2;
  job.master_addr = "m";
  job.master_port = 9;
  job.source = "torchrun's";
  EXPECT_EQ(resolve({}, job).kind, Kind::kRankZero);
  EXPECT_EQ(resolve({}, job).host, "m");
  EXPECT_EQ(resolve({.method = "tcp://[::1]:7?rank=0&world_size=3"}, job).world_size, 3);
  EXPECT_EQ(resolve({.method = "tcp://h:7"}, job).rank, 1);
  EXPECT_EQ(resolve({.method = "file:///x/y", .rank = 4, .world_size = 5}, job).rank, 4);
  EXPECT_EQ(resolve({.method = "file:///x/y"}, job).path, "/x/y");
  job.store_host = "s";
  job.store_port = 8;
  EXPECT_EQ(resolve({}, job).kind, Kind::kLauncher);
  EXPECT_EQ(resolve({.method = "tcp://h:7"}, job).kind, Kind::kRankZero);
}

TEST(Resolve, TakesASchemeInCapitals) {
  EXPECT_EQ(resolve({.method = "TCP://Host:7?rank=0&world_size=3"}, {}).host, "Host");
  EXPECT_EQ(resolve({.method = "File:///X", .rank = 0, .world_size = 2}, {}).path, "/X");
  EXPECT_EQ(resolve({.method = "ENV://"}, {}).kind, Kind::kAlone);
}

TEST(Resolve, AMethodThatSaysAllIgnoresLeftoverVariables) {
  const Lookup leftover = [](const char* name) -> std::optional<std::string> {
    const std::string_view variable(name);
    if (variable == "MASTER_ADDR") {
      return "old";
    }
    return variable == "ARGOSY_TOKEN" ? std::optional<std::string>("secret") : std::nullopt;
  };
  EXPECT_EQ(environment_for({.method = "tcp://h:1?rank=0&world_size=2"}, leftover).token, "secret");
  EXPECT_EQ(environment_for({.method = "file:///x", .rank = 0, .world_size = 2}, leftover).rank, 0);
  EXPECT_THROW((void)environment_for({.method = "tcp://h:1?rank=0"}, leftover), ConfigError);
  EXPECT_THROW((void)environment_for({.rank = 0, .world_size = 2}, leftover), ConfigError);
}

TEST(Resolve, RefusesWhatItCannotUse) {
  const auto refusal = [](const JoinOptions& options, const JobEnvironment& job = {}) {
    return error_text<ConfigError>([&] { (void)resolve(options, job); });
  };
  EXPECT_THAT(refusal({.method = "localhost:1"}), HasSubstr("no scheme"));
  EXPECT_THAT(refusal({.method = "mpi://", .rank = 0, .world_size = 1}),
              HasSubstr("unknown scheme \"mpi\""));
  EXPECT_THAT(refusal({.method = "tcp://h", .rank = 0, .world_size = 1}),
              HasSubstr("tcp://=h: expected host:port"));
  EXPECT_THAT(refusal({.method = "tcp://h:1"}), HasSubstr("needs rank and world_size"));
  EXPECT_THAT(refusal({.method = "tcp://h:1?rank=2&world_size=2"}), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(refusal({.method = "tcp://h:1?rank=1&size=2"}), HasSubstr("cannot use \"size=2\""));
  EXPECT_THAT(refusal({.method = "tcp://h:1?rank=1&world_size=2", .rank = 0}),
              HasSubstr("the option says 0, the method's query 1"));
  EXPECT_THAT(refusal({.method = "file://x", .rank = 0, .world_size = 1}), HasSubstr("absolute"));
  EXPECT_THAT(refusal({.method = "env://x"}), HasSubstr("takes nothing behind it"));
}

/// What rank 0 says when it hosts the store of a job of two at `host`.
std::string said_by_host(const std::string& host, const std::string& token) {
  const test::OwnedPort owned;
  JobEnvironment job{.rank = 0, .world_size = 2, .token = token, .source = "Slurm's"};
  job.master_addr = host;
  job.master_port = owned.port();
  testing::internal::CaptureStderr();
  (void)open_store(resolve({}, job), soon());
  return testing::internal::GetCapturedStderr();
}

TEST(OpenStore, RankZeroWarnsOfAStoreThatEverybodyMayJoin) {
  EXPECT_THAT(said_by_host(os::host_name(), ""),
              AllOf(HasSubstr("[rendezvous.token] ARGOSY_TOKEN is not set: whoever reaches port "),
                    HasSubstr("can join the job. Set it to the same secret for all ranks.")));
  EXPECT_EQ(said_by_host(os::host_name(), "sesame"), "");
  EXPECT_EQ(said_by_host("127.0.0.1", ""), "");
  EXPECT_EQ(said_by_host("localhost", ""), "");
}

TEST(OpenStore, RankZeroHostsUntilTheOthersLeft) {
  const test::OwnedPort owned;
  const auto place = [&](int rank) {
    return resolve({.method = "tcp://127.0.0.1:" + std::to_string(owned.port()),
                    .rank = rank,
                    .world_size = 3},
                   {});
  };
  std::promise<void> zero_is_closing;
  const std::shared_future<void> closing = zero_is_closing.get_future().share();
  std::vector<std::future<std::string>> others;
  for (const int rank : {1, 2}) {
    others.push_back(std::async(std::launch::async, [&, rank] {
      auto store = open_store(place(rank), soon());  // may come before there is a server
      auto presence = wait_for_ranks(*store, rank, 3, soon());
      closing.wait();
      store->set("still here", "yes", soon());
      return store->get("still here", soon());
    }));
  }
  auto store = open_store(place(0), soon());
  auto presence = wait_for_ranks(*store, 0, 3, soon());
  presence.reset();
  auto closed = std::async(std::launch::async, [&] { store.reset(); });
  EXPECT_EQ(closed.wait_for(milliseconds(50)), std::future_status::timeout)
      << "it must not close while others are present";
  zero_is_closing.set_value();
  for (auto& other : others) {
    EXPECT_EQ(other.get(), "yes");
  }
  closed.get();
}

class FileMeeting : public testing::Test {
 protected:
  FileMeeting() {
    std::string pattern = (std::filesystem::temp_directory_path() / "argosy-join-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~FileMeeting() override { std::filesystem::remove_all(folder_); }
  FileMeeting(const FileMeeting&) = delete;
  FileMeeting& operator=(const FileMeeting&) = delete;
  FileMeeting(FileMeeting&&) = delete;
  FileMeeting& operator=(FileMeeting&&) = delete;

  [[nodiscard]] MeetingPlace place(int rank, int size) const {
    return resolve({.method = "file://" + folder_ + "/store", .rank = rank, .world_size = size},
                   {});
  }

  std::string folder_;
};

TEST_F(FileMeeting, TheLastOneToLeaveRemovesTheFolder) {
  for (int run = 0; run < 2; ++run) {  // so that the same path serves again
    std::vector<std::thread> ranks;
    for (const int rank : {0, 1, 2}) {
      ranks.emplace_back([&, rank] {
        auto store = open_store(place(rank, 3), soon());
        auto presence = wait_for_ranks(*store, rank, 3, soon());
        presence.reset();
      });
    }
    for (std::thread& rank : ranks) {
      rank.join();
    }
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }
}

TEST_F(FileMeeting, AFolderDeletedInUseIsAnError) {
  auto store = open_store(place(0, 2), soon());
  auto waiting = std::async(std::launch::async, [&] {
    return error_text<RendezvousError>([&] { (void)store->get("k", soon()); });
  });
  std::filesystem::remove_all(folder_ + "/store");
  EXPECT_THAT(waiting.get(), HasSubstr("was deleted or replaced while this job used it"));
  EXPECT_THROW(store->set("k", "", soon()), RendezvousError);
}

TEST_F(FileMeeting, WhatIsNoStoreIsLeftAlone) {
  std::filesystem::create_directory(folder_ + "/store");
  std::filesystem::create_directory(folder_ + "/store/precious");
  EXPECT_THAT(error_text<ConfigError>([&] { (void)open_store(place(0, 2), soon()); }),
              HasSubstr("is no store: expected an empty or new folder"));
  EXPECT_THAT(error_text<RendezvousError>([&] { (void)file_store("/dev/null/store"); }),
              HasSubstr("cannot make folder /dev/null/store: Not a directory (ENOTDIR)"));
}

}  // namespace
}  // namespace argosy::rendezvous
