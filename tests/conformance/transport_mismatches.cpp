/// What happens when the ranks of a group call different operations: the whole table of pairs. No
/// rank may take another operation's data for its own, and whoever fails names both operations.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/transport/in_process.h"

#include "tests/conformance/transport_conformance.h"

namespace argosy::conformance {
namespace {

using namespace std::chrono_literals;
using transport::DType;
using transport::ReduceOp;
using transport::Timeout;
using transport::Transport;

constexpr int kRanks = 3;

/// Over Gloo a mismatch is found at the deadline. Every rank must have begun by then, on a machine
/// that others keep busy; a second of patience follows.
constexpr Timeout kShort = 400ms;

/// For the operation after a mismatch, at which a rank that only sent must learn of it.
constexpr Timeout kNext = 5s;

/// Ranks of several groups, side by side: nearly all of them wait.
constexpr size_t kThreadsAtOnce = 279;

/// What a rank gives and gets: every element of every rank's input is another one.
struct Memory {
  explicit Memory(int rank) : in(64), out(64, -1) {
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = (rank + 1) * 1000 + static_cast<int32_t>(i);
    }
  }
  friend bool operator==(const Memory&, const Memory&) = default;

  std::vector<int32_t> in;
  std::vector<int32_t> out;
};

/// A call of a collective, and what messages say of it.
struct Called {
  std::string words;
  std::function<void(Transport&, Memory&, Timeout)> run;
};

Called all_reduce(int64_t count, DType dtype, ReduceOp op, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.all_reduce(m.in.data(), count, dtype, op, timeout);
          }};
}
Called reduce(ReduceOp op, int root, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.reduce(m.in.data(), 12, DType::kI32, op, root, timeout);
          }};
}
Called reduce_scatter(ReduceOp op, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.reduce_scatter(m.in.data(), m.out.data(), 4, DType::kI32, op, timeout);
          }};
}
Called broadcast(int64_t count, DType dtype, int root, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.broadcast(m.in.data(), count, dtype, root, timeout);
          }};
}
Called all_gather(int64_t count, DType dtype, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.all_gather(m.in.data(), m.out.data(), count, dtype, timeout);
          }};
}
Called all_gather_v(const std::vector<int64_t>& counts, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.all_gather_v(m.in.data(), m.out.data(), counts, DType::kU8, timeout);
          }};
}
Called gather(DType dtype, int root, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.gather(m.in.data(), m.out.data(), 4, dtype, root, timeout);
          }};
}
Called scatter(DType dtype, int root, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.scatter(m.in.data(), m.out.data(), 4, dtype, root, timeout);
          }};
}
Called all_to_all(int64_t count, DType dtype, const std::string& words) {
  return {words, [=](Transport& t, Memory& m, Timeout timeout) {
            t.all_to_all(m.in.data(), m.out.data(), count, dtype, timeout);
          }};
}
Called all_to_all_v(const std::string& words) {
  return {words, [](Transport& t, Memory& m, Timeout timeout) {
            const std::vector<int64_t> counts(kRanks, 4);
            t.all_to_all_v(m.in.data(), counts, m.out.data(), counts, DType::kI32, timeout);
          }};
}

/// No two of them are the same operation.
std::vector<Called> all_calls() {
  return {
      all_reduce(12, DType::kI32, ReduceOp::kSum, "all_reduce of 48 B of i32 (sum)"),
      all_reduce(12, DType::kI32, ReduceOp::kMax, "all_reduce of 48 B of i32 (max)"),
      all_reduce(8, DType::kI32, ReduceOp::kSum, "all_reduce of 32 B of i32 (sum)"),
      all_reduce(12, DType::kF32, ReduceOp::kSum, "all_reduce of 48 B of f32 (sum)"),
      reduce(ReduceOp::kSum, 0, "reduce of 48 B of i32 (sum) with root 0"),
      reduce(ReduceOp::kMax, 0, "reduce of 48 B of i32 (max) with root 0"),
      reduce(ReduceOp::kSum, 1, "reduce of 48 B of i32 (sum) with root 1"),
      reduce_scatter(ReduceOp::kSum, "reduce_scatter of 16 B of i32 (sum)"),
      reduce_scatter(ReduceOp::kMin, "reduce_scatter of 16 B of i32 (min)"),
      broadcast(12, DType::kI32, 0, "broadcast of 48 B of i32 with root 0"),
      broadcast(12, DType::kI32, 1, "broadcast of 48 B of i32 with root 1"),
      broadcast(12, DType::kI32, 2, "broadcast of 48 B of i32 with root 2"),
      broadcast(8, DType::kI32, 0, "broadcast of 32 B of i32 with root 0"),
      broadcast(12, DType::kF32, 0, "broadcast of 48 B of f32 with root 0"),
      all_gather(4, DType::kI32, "all_gather of 48 B of i32"),
      all_gather(2, DType::kI64, "all_gather of 48 B of i64"),
      all_gather(3, DType::kI32, "all_gather of 36 B of i32"),
      all_gather_v({0, 32, 0}, "all_gather_v of 32 B of u8"),
      all_gather_v({1, 0, 31}, "all_gather_v of 32 B of u8"),
      gather(DType::kI32, 0, "gather of 16 B of i32 with root 0"),
      gather(DType::kF32, 0, "gather of 16 B of f32 with root 0"),
      gather(DType::kI32, 1, "gather of 16 B of i32 with root 1"),
      scatter(DType::kI32, 0, "scatter of 16 B of i32 with root 0"),
      scatter(DType::kF32, 0, "scatter of 16 B of f32 with root 0"),
      scatter(DType::kI32, 2, "scatter of 16 B of i32 with root 2"),
      all_to_all(4, DType::kI32, "all_to_all of 48 B of i32"),
      all_to_all(3, DType::kI32, "all_to_all of 36 B of i32"),
      all_to_all(4, DType::kF32, "all_to_all of 48 B of f32"),
      all_to_all_v("all_to_all_v of i32"),
      {"barrier", [](Transport& t, Memory& /*m*/, Timeout timeout) { t.barrier(timeout); }},
      {"share of 4096 B",
       [](Transport& t, Memory& /*m*/, Timeout timeout) { (void)t.share(4096, timeout); }},
      {"share of 8192 B",
       [](Transport& t, Memory& /*m*/, Timeout timeout) { (void)t.share(8192, timeout); }},
  };
}

/// The operations with a root, as `root` would have it.
std::vector<Called> calls_with_root(int root) {
  return {
      reduce(ReduceOp::kSum, root, fmt::format("reduce of 48 B of i32 (sum) with root {}", root)),
      broadcast(12, DType::kI32, root, fmt::format("broadcast of 48 B of i32 with root {}", root)),
      gather(DType::kI32, root, fmt::format("gather of 16 B of i32 with root {}", root)),
      scatter(DType::kI32, root, fmt::format("scatter of 16 B of i32 with root {}", root)),
  };
}

/// What each of `ranks` ranks has when all of them make a call: by call, then by rank.
std::vector<std::vector<Memory>> results_of(const std::vector<Called>& table, int ranks) {
  std::vector<std::vector<Memory>> all(table.size());
  for (std::vector<Memory>& of_ranks : all) {
    for (int rank = 0; rank < ranks; ++rank) {
      of_ranks.emplace_back(rank);
    }
  }
  const auto transports = transport::in_process_transports(ranks);
  test::run_ranks(ranks, [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    for (size_t i = 0; i < table.size(); ++i) {
      table[i].run(*transports[r], all[i][r], kTimeout);
    }
  });
  return all;
}

/// What each rank of a group calls, as places in a table of calls.
using Group = std::vector<size_t>;

/// A group of three for each pair of calls, in which one rank does something else.
std::vector<Group> all_pairs(size_t calls) {
  std::vector<Group> groups;
  for (size_t most = 0; most < calls; ++most) {
    for (size_t one = 0; one < calls; ++one) {
      if (most != one) {
        groups.emplace_back(kRanks, most)[(most + one * 2) % kRanks] = one;
      }
    }
  }
  return groups;
}

/// Runs many groups side by side. In each of them every rank makes its call; all must hear of it,
/// at the next operation at the latest, in words that name two of the calls.
void expect_that_none_passes(const Factory& make,
                             const std::vector<Called>& table,
                             const std::vector<Group>& groups) {
  const auto ranks = static_cast<int>(groups.at(0).size());
  const std::vector<std::vector<Memory>> results = results_of(table, ranks);
  const auto run_rank = [&](const Group& group, int rank, const Meeting& meeting) {
    std::set<std::string> words;
    std::string all;
    for (const size_t call : group) {
      words.insert(table[call].words);
      all += table[call].words + "; ";
    }
    SCOPED_TRACE(::testing::Message() << "ranks call " << all << "this is rank " << rank);
    const auto r = static_cast<size_t>(rank);
    const auto t = make(rank, ranks, meeting.store());
    t->barrier(kTimeout);
    Memory memory(rank);
    try {
      table[group[r]].run(*t, memory, kShort);
      // It waited for nobody who called something else, and learns it now.
      EXPECT_EQ(memory, results[group[r]][r]) << "another operation's data";
      t->barrier(kNext);
      ADD_FAILURE() << "nothing was noticed";
    } catch (const CommError& e) {
      EXPECT_TRUE(e.context().mismatch) << e.what();
      const auto named = std::ranges::count_if(words, [&](const std::string& one) {
        return std::string_view(e.what()).find(one) != std::string_view::npos;
      });
      EXPECT_GE(named, std::min<int64_t>(2, std::ssize(words))) << e.what();
    }
  };
  const size_t at_once = kThreadsAtOnce / static_cast<size_t>(ranks);
  for (size_t first = 0; first < groups.size(); first += at_once) {
    const size_t count = std::min(at_once, groups.size() - first);
    std::vector<std::unique_ptr<Meeting>> meetings(count);
    for (auto& meeting : meetings) {
      meeting = std::make_unique<Meeting>(test::RankMode::kThreads);
    }
    test::run_ranks(static_cast<int>(count) * ranks,
                    [&](int index) {
                      const auto i = static_cast<size_t>(index / ranks);
                      run_rank(groups[first + i], index % ranks, *meetings[i]);
                    },
                    {.mode = test::RankMode::kThreads, .deadline = 60s});
  }
}

TEST_P(TransportMismatches, NoPairOfCallsPasses) {
  const std::vector<Called> calls = all_calls();
  expect_that_none_passes(GetParam().make, calls, all_pairs(calls.size()));
}

/// Four ranks: on each of them in turn another root than on the other three, and roots that differ
/// on all ranks. With roots that differ, all ranks may only send.
TEST_P(TransportMismatches, NoWrongRootPasses) {
  constexpr size_t kFour = 4;
  std::vector<Called> calls;  // those with root r begin at r * operations
  for (int root = 0; root < static_cast<int>(kFour); ++root) {
    std::ranges::move(calls_with_root(root), std::back_inserter(calls));
  }
  const size_t operations = calls.size() / kFour;
  std::vector<Group> groups;
  for (size_t operation = 0; operation < operations; ++operation) {
    const auto with_root = [&](size_t root) { return root % kFour * operations + operation; };
    for (size_t shift = 0; shift < kFour; ++shift) {
      groups.push_back(
          {with_root(shift), with_root(shift + 1), with_root(shift + 2), with_root(shift + 3)});
    }
    for (size_t root = 0; root < kFour; ++root) {
      for (size_t wrong = root + 1; wrong < root + kFour; ++wrong) {
        for (size_t odd = 0; odd < kFour; ++odd) {
          groups.emplace_back(kFour, with_root(root))[odd] = with_root(wrong);
        }
      }
    }
  }
  expect_that_none_passes(GetParam().make, calls, groups);
}

/// Rank 1 sends more to rank 0 than that expects, or less. Counts are no part of the call, for
/// ranks may have different ones. No rank leaves before all have ended: who has all its parts would
/// be named for leaving.
TEST_P(TransportMismatches, APartOfAnotherLengthIsNeverTaken) {
  for (const int64_t sent : {3, 5}) {
    const auto outcomes = test::try_run_ranks(
        kRanks,
        [sent,
         meeting = std::make_shared<Meeting>(test::RankMode::kThreads),
         ended = std::make_shared<std::latch>(kRanks)](int rank) {
          const auto t = GetParam().make(rank, kRanks, meeting->store());
          const std::shared_ptr<void> leaves(nullptr, [ended](void*) { ended->arrive_and_wait(); });
          t->barrier(kTimeout);
          Memory memory(rank);
          const std::vector<int64_t> expected(kRanks, 4);
          std::vector<int64_t> sends = expected;
          sends[0] = rank == 1 ? sent : 4;
          t->all_to_all_v(
              memory.in.data(), sends, memory.out.data(), expected, DType::kI32, kShort);
        });
    EXPECT_THAT(
        outcomes[0].error,
        ::testing::AnyOf(::testing::HasSubstr(
                             fmt::format("rank 1 sends {} B, but rank 0 expects 16 B", 4 * sent)),
                         ::testing::HasSubstr("it may send other sizes than are expected here")))
        << describe(outcomes[0]);
  }
}

}  // namespace
}  // namespace argosy::conformance
