/// How the ranks of a group find each other through a store of the caller's.
#include <barrier>
#include <cstdlib>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "argosy/abi/comm_test_support.h"
#include "argosy/base/deadline.h"
#include "argosy/base/strings.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/endpoint.h"
#include "argosy/rendezvous/store_client.h"

#include "tests/support/owned_port.h"

namespace argosy::abi {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(AbiMeeting, WhoWaitsInVainForTheFirstRankHearsOfIt) {
  OtherStore store;
  const Rank rank(store, 1, 2, {.timeout_ms = 200});
  EXPECT_EQ(rank.group(), nullptr);
  EXPECT_EQ(rank.code, ARGOSY_TIMED_OUT);
  EXPECT_THAT(rank.why(), HasSubstr("rank 0 of group \"theirs\" did not come"));
}

TEST(AbiMeeting, TheFirstRankHearsWhoDoesNotCome) {
  OtherStore store;
  const Rank rank(store, 0, 3, {.timeout_ms = 300});
  EXPECT_EQ(rank.group(), nullptr);
  EXPECT_EQ(rank.code, ARGOSY_TIMED_OUT);
  EXPECT_THAT(rank.why(), HasSubstr("1, 2"));
}

/// Groups of which this process is the first rank share one store, and have parts of their own.
TEST(AbiMeeting, GroupsThatLiveAtOnceDoNotMeetEachOther) {
  OtherStore first, second;
  test::run_ranks(2, [&](int number) {
    Rank one(first, number, 2);
    Rank other(second, 1 - number, 2);
    ASSERT_NE(other.group(), nullptr) << other.why();
    for (Rank* rank : {&one, &other}) {
      int32_t value = 1;
      EXPECT_EQ(sum(*rank, value).code, ARGOSY_OK);
      EXPECT_EQ(value, 2);
    }
    argosy_group_close(one.group(), 5'000);
    argosy_group_close(other.group(), 5'000);
  });
}

/// PyTorch gives the groups before and after destroy_process_group() the same names in its store.
TEST(AbiMeeting, AGroupMeetsWhereAnotherOneHasMet) {
  OtherStore store;
  std::barrier together(2);
  test::run_ranks(2, [&](int number) {
    for (int time = 0; time < 3; ++time) {
      together.arrive_and_wait();
      const int gets = store.gets();
      together.arrive_and_wait();
      if (number == 0) {
        store.wait_for_gets(gets + 1);  // rank 1 reads what the group before has left, if anything
      }
      Rank rank(store, number, 2);
      ASSERT_NE(rank.group(), nullptr) << rank.why();
      int32_t value = 1;
      EXPECT_EQ(sum(rank, value).code, ARGOSY_OK);
      EXPECT_EQ(value, 2);
      argosy_group_close(rank.group(), 5'000);
    }
  });
}

/// The same, while other groups keep the store of the first rank alive, where nobody comes to the
/// old part.
TEST(AbiMeeting, AGroupMeetsWhereAnotherOneHasMetInAStoreThatLives) {
  OtherStore store, others;
  std::barrier together(2);
  test::run_ranks(2, [&](int number) {
    Rank lasting(others, number, 2);
    for (int time = 0; time < 2; ++time) {
      together.arrive_and_wait();
      const int gets = store.gets();
      together.arrive_and_wait();
      if (number == 0) {
        store.wait_for_gets(gets + 1);
      }
      Rank rank(store, number, 2);
      ASSERT_NE(rank.group(), nullptr) << rank.why();
      int32_t value = 1;
      EXPECT_EQ(sum(rank, value).code, ARGOSY_OK);
      argosy_group_close(rank.group(), 5'000);
    }
    argosy_group_close(lasting.group(), 5'000);
  });
}

/// An invitation of a process that was killed before the ranks had met.
std::string invitation_to(const test::OwnedPort& nobody) {
  return "argosy-store-2 127.0.0.1:" + std::to_string(nobody.port()) +
         " 00112233445566778899aabbccddeeff\n0123456789abcdef";
}

TEST(AbiMeeting, WhatADeadProcessHasLeftIsReadAgain) {
  const test::OwnedPort nobody;
  OtherStore store;
  OtherStore::set(&store, "argosy/invitation", invitation_to(nobody).c_str(), nullptr);
  test::run_ranks(2, [&](int number) {
    if (number == 0) {
      store.wait_for_gets(2);  // rank 1 has followed it, in vain
    }
    Rank rank(store, number, 2);
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    argosy_group_close(rank.group(), 5'000);
  });
}

/// A rank that cannot reach the store of its group keeps no other thread from making one.
TEST(AbiMeeting, OtherGroupsAreMadeWhileOneLooksForItsStore) {
  const test::OwnedPort nobody;
  OtherStore slow, quick;
  OtherStore::set(&slow, "argosy/invitation", invitation_to(nobody).c_str(), nullptr);
  auto looking = std::async(std::launch::async, [&] { return std::make_unique<Rank>(slow, 1, 2); });
  slow.wait_for_gets(2);
  test::run_ranks(2, [&](int number) {
    Rank rank(quick, number, 2, {.timeout_ms = 5'000});
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    argosy_group_close(rank.group(), 5'000);
  });
  Rank first(slow, 0, 2);
  const std::unique_ptr<Rank> found = looking.get();
  ASSERT_NE(found->group(), nullptr) << found->why();
  argosy_group_close(found->group(), 5'000);
}

/// Of each group its own, though one process is the first rank of both.
TEST(AbiMeeting, AnInvitationLeadsTowardsWhatTheGroupSays) {
  OtherStore by_number, by_name;
  test::run_ranks(2, [&](int number) {
    const Rank one(by_number, number, 2, {.towards = "127.0.0.1"});
    const Rank other(by_name, number, 2, {.towards = "localhost"});
    EXPECT_NE(other.group(), nullptr) << other.why();
  });
  EXPECT_THAT(by_number.history().front(), StartsWith("argosy-store-2 127.0.0.1:"));
  EXPECT_THAT(by_name.history().front(), StartsWith("argosy-store-2 localhost:"));
}

TEST(AbiMeeting, WithoutAHostToGoTowardsTheInterfaceIsTheUsers) {
  setenv("ARGOSY_IFNAME", "lo", 1);  // NOLINT(concurrency-mt-unsafe)
  OtherStore store;
  test::run_ranks(2, [&](int number) {
    const Rank rank(store, number, 2, {.towards = ""});
    EXPECT_NE(rank.group(), nullptr) << rank.why();
  });
  unsetenv("ARGOSY_IFNAME");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_THAT(store.history().front(), StartsWith("argosy-store-2 127.0.0.1:"));
}

/// A host's own name often leads to the loopback there, and says nothing of the other ranks' way.
TEST(AbiMeeting, WhereTheWayThereIsTheLoopbackTheInterfaceIsTheUsers) {
  setenv("ARGOSY_IFNAME", "lo", 1);  // NOLINT(concurrency-mt-unsafe)
  OtherStore store;
  std::barrier together(2);
  test::run_ranks(2, [&](int number) {
    const Rank rank(store, number, 2, {.towards = "LOCALHOST"});
    EXPECT_NE(rank.group(), nullptr) << rank.why();
    const std::string invitation = store.history().front();
    EXPECT_THAT(invitation, StartsWith("argosy-store-2 LOCALHOST:"));
    const rendezvous::Endpoint at = rendezvous::parse_endpoint(
        "test",
        "the store",
        strings::split(invitation.substr(0, invitation.find('\n')), ' ').at(1));
    EXPECT_TRUE(os::connect_tcp("127.0.0.1", at.port, Deadline::after(5s)).ok());
    EXPECT_FALSE(os::connect_tcp("127.0.0.2", at.port, Deadline::after(5s)).ok()) << "not on all";
    together.arrive_and_wait();
  });
  unsetenv("ARGOSY_IFNAME");  // NOLINT(concurrency-mt-unsafe)
}

TEST(AbiMeeting, WhatIsWrongIsToldBeforeAnybodyIsInvited) {
  OtherStore store;
  {
    const Rank hurried(store, 0, 2, {.timeout_ms = 0});
    EXPECT_EQ(hurried.code, ARGOSY_MISUSED);
    EXPECT_THAT(hurried.why(), HasSubstr("timeout must be positive"));
  }
  const std::array<int, 2> twice{3, 3};
  const Rank double_rank(store, 0, 2, {.world_ranks = twice.data()});
  EXPECT_EQ(double_rank.code, ARGOSY_MISUSED);
  EXPECT_THAT(double_rank.why(), HasSubstr("world rank 3"));
  setenv("ARGOSY_BACKEND", "carrier_pigeon", 1);  // NOLINT(concurrency-mt-unsafe)
  const Rank rank(store, 0, 2, {.timeout_ms = 300});
  unsetenv("ARGOSY_BACKEND");  // NOLINT(concurrency-mt-unsafe)
  EXPECT_EQ(rank.code, ARGOSY_FAILED);
  EXPECT_THAT(rank.why(), HasSubstr("ARGOSY_BACKEND"));
  EXPECT_THAT(store.history(), IsEmpty());
}

/// The parts of a store in which something lies. `invitation`: to it.
std::set<std::string> parts_of_store(const std::string& invitation) {
  const std::vector<std::string> words =
      strings::split(invitation.substr(0, invitation.find('\n')), ' ');
  const rendezvous::Endpoint at = rendezvous::parse_endpoint("test", "the store", words.at(1));
  const Deadline deadline = Deadline::after(10s);
  const auto store = rendezvous::connect_store(at.host, at.port, words.at(2), deadline);
  std::vector<std::string> names = store->keys("", deadline);
  for (const rendezvous::Departure& gone : store->departures("", deadline)) {
    names.push_back(gone.member);
  }
  std::set<std::string> parts;
  for (const std::string& name : names) {
    parts.insert(name.substr(0, name.find('/')));
  }
  return parts;
}

TEST(AbiMeeting, AStoreKeepsNothingOfGroupsThatAreOver) {
  OtherStore of_first, of_others;
  std::barrier together(2);
  test::run_ranks(2, [&](int number) {
    Rank lasting(of_first, number, 2);
    for (int time = 0; time < 4; ++time) {
      together.arrive_and_wait();  // both have left the one before
      Rank rank(of_others, number, 2);
      ASSERT_NE(rank.group(), nullptr) << rank.why();
      int32_t value = 1;
      EXPECT_EQ(sum(rank, value).code, ARGOSY_OK);
      argosy_group_close(rank.group(), 5'000);
    }
    together.arrive_and_wait();
    if (number == 0) {
      const std::string invitation = of_first.history().front();
      std::vector<std::string> here;  // the group that lives, and the newest that is over
      for (const std::string& one : {invitation, *(of_others.history().end() - 2)}) {
        here.push_back(one.substr(one.find('\n') + 1));
      }
      EXPECT_THAT(parts_of_store(invitation), ::testing::UnorderedElementsAreArray(here));
    }
    together.arrive_and_wait();
    argosy_group_close(lasting.group(), 5'000);
  });
}

}  // namespace
}  // namespace argosy::abi
