/// Groups made from groups, as threads; torch-free.
#include <fmt/format.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using ::testing::HasSubstr;
using testing::with_threads;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

int64_t sum(const Group& group, int64_t value) {
  group.state().run({.op = "all_reduce"}, {}, [&](Transport& transport, const Deadline& deadline) {
    transport.all_reduce(&value, 1, DType::kI64, ReduceOp::kSum, deadline.remaining());
  });
  return value;
}

TEST(Split, ColorsMakeGroupsAndKeysOrderThem) {
  with_threads(5, [](Group& world) {
    const int me = world.rank();
    const Group group = world.split({.color = me % 2, .key = -me});
    EXPECT_EQ(group.size(), me % 2 == 0 ? 3 : 2);
    EXPECT_EQ(group.rank(), me % 2 == 0 ? 2 - me / 2 : 1 - me / 2);  // keys reverse the order
    EXPECT_EQ(sum(group, me), me % 2 == 0 ? 0 + 2 + 4 : 1 + 3);
    EXPECT_EQ(sum(world, 1), 5);
  });
}

TEST(Split, NegativeColorIsInNoGroup) {
  with_threads(3, [](Group& world) {
    Group group = world.split({.color = world.rank() == 1 ? -1 : 7});
    if (world.rank() == 1) {
      EXPECT_EQ(group.rank(), -1);
      EXPECT_EQ(group.size(), 0);
      EXPECT_THAT(error_text<UsageError>([&] { sum(group, 1); }),
                  HasSubstr("[comm.all_reduce] this process is not a member of group"));
      group.destroy();
    } else {
      EXPECT_EQ(sum(group, 10 + world.rank()), 22);
    }
  });
}

TEST(NewGroup, TakesItsOrderFromTheList) {
  with_threads(4, [](Group& world) {
    const Group group = world.new_group({3, 1});
    EXPECT_EQ(group.size(), 2);
    EXPECT_EQ(group.rank(), world.rank() == 3 ? 0 : world.rank() == 1 ? 1 : -1);
    if (group.rank() >= 0) {
      EXPECT_EQ(sum(group, world.rank()), 4);
    }
    const Group alone = world.new_group({2}, {.label = "pp"});
    EXPECT_EQ(alone.name(), "world.1.pp[2]");
    if (world.rank() == 2) {
      EXPECT_EQ(sum(alone, 9), 9);
    }
  });
}

TEST(NewGroup, NeedsItsMembersOnlyWhereTheyMakeIt) {
  with_threads(5, [](Group& world) {
    if (world.rank() == 4) {
      EXPECT_THAT(error_text<UsageError>([&] {
                    (void)world.new_group({0, 2}, {.members_only = true});
                  }),
                  HasSubstr("rank 4 is not among the members 0, 2"));
      return;
    }
    const int parity = world.rank() % 2;
    const std::vector<int> mine{parity, parity + 2};
    for (int i = 0; i < 2; ++i) {  // the second is another group
      const Group pair = world.new_group(mine, {.members_only = true, .label = "dp"});
      EXPECT_EQ(sum(pair, world.rank()), 2 * parity + 2);
      EXPECT_EQ(pair.name(),
                fmt::format("world.dp[{},{}]{}", parity, parity + 2, i == 0 ? "" : "#2"));
    }
    if (world.rank() < 3) {
      const Group row = world.new_group({0, 1, 2}, {.members_only = true});
      EXPECT_EQ(row.name(), "world.[0:2:1]");
      EXPECT_EQ(sum(row, 1), 3);
    }
  });
}

/// Keys and departures that are in the store after each rank of a world of three has made and
/// dropped `groups` groups over `backend`, and a group of each.
size_t left_in_store_after(int groups, const std::string& backend) {
  const auto store = rendezvous::in_process_store();
  std::atomic<size_t> left = 0;
  test::run_ranks(3, [&](int rank) {
    const Group world =
        connect({.backend = backend, .store = store, .rank = rank, .size = 3, .timeout = 20s});
    for (int i = 0; i < groups; ++i) {
      const Group group = world.new_group({2, 1, 0});
      const Group inner = group.split({.color = rank == 0 ? 0 : 1});
      EXPECT_EQ(sum(inner, 1), inner.size());
      EXPECT_EQ(sum(group, 1), 3);
    }
    EXPECT_EQ(sum(world, 1), 3);  // from here on all have dropped theirs
    left = store->keys("", Deadline::after(20s)).size() +
           store->departures("", Deadline::after(20s)).size();
    EXPECT_EQ(sum(world, 1), 3);
  });
  return left;
}

TEST(NewGroup, LeavesNothingInTheStoreWhenAllHaveDroppedIt) {
  EXPECT_EQ(left_in_store_after(100, "in_process"), left_in_store_after(0, "in_process"));
  EXPECT_EQ(left_in_store_after(3, "gloo"), left_in_store_after(0, "gloo"));
}

TEST(NewGroup, OutlivesTheOneThatItWasMadeFrom) {
  with_threads(3, [](Group& world) {
    std::optional<Group> outer = world.new_group({0, 1, 2});
    const Group inner = outer->new_group({0, 1});
    outer.reset();  // at different times on each rank: what it removes must not be the inner one's
    if (world.rank() < 2) {
      EXPECT_EQ(sum(inner.new_group({0, 1}), 1), 2);
    }
    EXPECT_EQ(sum(world, 1), 3);
  });
}

TEST(NewGroup, ManyOverlappingOnesDoNotMeet) {
  with_threads(3, [](Group& world) {
    std::vector<Group> groups;
    for (int i = 0; i < 4; ++i) {
      groups.push_back(world.new_group({0, 1, 2}));
      groups.push_back(groups.back().split({.color = 0}));  // of a group of a group
    }
    for (size_t i = 0; i < groups.size(); ++i) {
      EXPECT_EQ(sum(groups[i], static_cast<int64_t>(i)), static_cast<int64_t>(3 * i));
      for (size_t j = 0; j < i; ++j) {
        EXPECT_NE(groups[i].name(), groups[j].name());
      }
    }
  });
}

TEST(NewGroup, OutlivesTheWorldItCameFrom) {
  with_threads(2, [](Group& world) {
    const Group child = world.new_group({0, 1});
    world.destroy();
    EXPECT_EQ(sum(child, 1), 2);
  });
}

TEST(Groups, ErrorsOfASubGroupGiveTheWorldRanks) {
  std::promise<void> other_gave_up;
  with_threads(4, [&](Group& world) {
    const Group pair = world.new_group({3, 1});
    if (world.rank() == 1) {
      other_gave_up.get_future().wait();
    } else if (world.rank() == 3) {
      EXPECT_THAT(error_text<TimeoutError>([&] {
                    pair.state().run({.op = "barrier"},
                                     300ms,
                                     [](Transport& transport, const Deadline& deadline) {
                                       transport.barrier(deadline.remaining());
                                     });
                  }),
                  ::testing::AllOf(HasSubstr("rank 0/2 (world rank 3) group \"world.0\""),
                                   HasSubstr("waiting for rank 1 (world rank 1)")));
      EXPECT_THAT(error_text<CommError>([&] { sum(pair, 1); }),
                  HasSubstr("rank 0/2 (world rank 3) group \"world.0\": the group is broken"));
      other_gave_up.set_value();
    }
  });
}

TEST(Groups, ALateRankIsNamedByTheBarrier) {
  std::promise<void> others_gave_up;
  std::atomic<int> gave_up{0};
  with_threads(3, [&](Group& world) {
    EXPECT_EQ(sum(world, 1), 3);
    if (world.rank() == 1) {
      others_gave_up.get_future().wait();
      return;
    }
    try {
      world.state().run(
          {.op = "barrier"}, 300ms, [](Transport& transport, const Deadline& deadline) {
            transport.barrier(deadline.remaining());
          });
      ADD_FAILURE() << "the barrier passed";
    } catch (const CommError& e) {
      EXPECT_THAT(e.peers(), ::testing::ElementsAre(1)) << e.what();
      EXPECT_THAT(e.what(),
                  ::testing::AllOf(HasSubstr("[comm.barrier]"),
                                   HasSubstr("it was last seen after all_reduce"),
                                   HasSubstr("last completed seq 0")));
    }
    if (++gave_up == 2) {
      others_gave_up.set_value();
    }
  });
}

}  // namespace
}  // namespace argosy::comm
