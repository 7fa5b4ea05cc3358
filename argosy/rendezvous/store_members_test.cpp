// Members, notes and departures: one suite over every store.
#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/rendezvous/limits.h"
#include "argosy/rendezvous/store_kinds.h"

namespace argosy::rendezvous {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StoreMembers : public testing::TestWithParam<StoreKind> {
 protected:
  std::function<std::shared_ptr<Store>()> party_ = GetParam().world();
  std::shared_ptr<Store> store_ = party_();

  std::string note_of(const std::string& member) {
    for (const Member& one : store_->members(member, soon())) {
      if (one.name == member) {
        return one.note;
      }
    }
    return "absent";
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, StoreMembers, testing::ValuesIn(store_kinds()), kind_name);

TEST_P(StoreMembers, AnnouncedOnesAreListedWithTheirNotes) {
  auto other = party_();
  auto second = other->announce("rank/1", soon());
  auto first = other->announce("rank/0", soon());
  auto agent = other->announce("agent", soon());
  first->note("all_reduce, seq 7");
  first->note("all_reduce, seq 8");
  ASSERT_TRUE(eventually([&] { return note_of("rank/0") == "all_reduce, seq 8"; }));
  first->note("x");  // shorter than the one before
  ASSERT_TRUE(eventually([&] { return note_of("rank/0") == "x"; }));
  const std::vector<Member> ranks = store_->members("rank/", soon());
  ASSERT_THAT(ranks, SizeIs(2));
  EXPECT_EQ(ranks[0].name, "rank/0");
  EXPECT_EQ(ranks[1].name, "rank/1");
  EXPECT_EQ(ranks[1].note, "");
  EXPECT_THAT(store_->members("", soon()), SizeIs(3));
  EXPECT_THAT(store_->departures("", soon()), IsEmpty());
}

TEST_P(StoreMembers, RemoveForgetsTheDepartureOfThatNameAlone) {
  for (const char* member : {"rank/1", "rank/11", "agent"}) {
    store_->announce(member, soon())->leave("rank/1", soon());
  }
  EXPECT_FALSE(party_()->remove("rank/1", soon()));
  const std::vector<Departure> gone = store_->departures("", soon());
  ASSERT_THAT(gone, SizeIs(2));
  EXPECT_EQ(gone[0].member, "rank/11");
  EXPECT_EQ(gone[1].member, "agent");
  EXPECT_EQ(gone[1].note, "rank/1");
  auto again = party_()->announce("rank/1", soon());
  again->leave("", soon());
  EXPECT_THAT(store_->departures("rank/1", soon()), SizeIs(2));
}

TEST_P(StoreMembers, LeavingIsADepartureThatIsNotLost) {
  {
    auto silent = party_()->announce("rank/2", soon());
    silent->note("working");
  }  // the destructor leaves with an empty note
  auto polite = party_()->announce("rank/1", soon());
  polite->leave("done: 3 epochs\nlast line");
  polite->leave("again");
  polite->note("too late");
  const std::vector<Departure> gone = store_->departures("rank/", soon());
  ASSERT_THAT(gone, SizeIs(2));
  EXPECT_EQ(gone[0].member, "rank/2");
  EXPECT_FALSE(gone[0].lost);
  EXPECT_EQ(gone[0].note, "");
  EXPECT_EQ(gone[1].member, "rank/1");
  EXPECT_FALSE(gone[1].lost);
  EXPECT_EQ(gone[1].note, "done: 3 epochs\nlast line");
  EXPECT_THAT(store_->members("", soon()), IsEmpty());
  EXPECT_THAT(store_->departures("agent", soon()), IsEmpty());
}

TEST_P(StoreMembers, ANameIsPresentOnceAtATime) {
  auto first = party_()->announce("rank/0", soon());
  try {
    auto second = party_()->announce("rank/0", soon());
    FAIL() << "announced twice";
  } catch (const RendezvousError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[rendezvous.announce] member \""));
    EXPECT_THAT(error.what(), HasSubstr("rank/0\" is present already: expected it once"));
  }
  EXPECT_THAT(store_->departures("", soon()), IsEmpty()) << "the refused one is no departure";
  first->leave("");
  auto third = party_()->announce("rank/0", soon());  // a new life
  EXPECT_THAT(store_->members("", soon()), SizeIs(1));
  EXPECT_THAT(store_->departures("", soon()), SizeIs(1));
}

TEST_P(StoreMembers, AllPartiesSeeDeparturesInOneOrder) {
  constexpr int kMembers = 12;
  std::vector<std::thread> threads;
  threads.reserve(kMembers);
  for (int i = 0; i < kMembers; ++i) {
    threads.emplace_back([i, party = party_()] {
      auto presence = party->announce("rank/" + std::to_string(i), soon());
      presence->leave(std::to_string(i));
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto names = [](const std::vector<Departure>& gone) {
    std::vector<std::string> members;
    for (const Departure& one : gone) {
      members.push_back(one.member + " " + one.note);
    }
    return members;
  };
  const std::vector<std::string> ours = names(store_->departures("", soon()));
  EXPECT_THAT(ours, SizeIs(kMembers));
  EXPECT_EQ(names(party_()->departures("", soon())), ours);
}

TEST_P(StoreMembers, LongNotesAreCut) {
  auto presence = party_()->announce("rank/0", soon());
  presence->leave(std::string(1 << 20, 'n'));
  EXPECT_EQ(store_->departures("", soon()).at(0).note.size(), kLargestNoteBytes);
}

TEST(InProcessStore, SimulatesADeath) {
  auto store = in_process_store();
  auto presence = store->announce("rank/1", soon());
  presence->note("seq 5");
  lose(std::move(presence));
  const std::vector<Departure> gone = store->departures("", soon());
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_TRUE(gone[0].lost);
  EXPECT_EQ(gone[0].note, "seq 5");
  EXPECT_THROW(lose(nullptr), UsageError);
}

}  // namespace
}  // namespace argosy::rendezvous
