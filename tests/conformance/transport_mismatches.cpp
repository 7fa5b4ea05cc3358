/// What happens when the ranks of a group call different operations: the whole table of pairs. No
/// rank may take another operation's data for its own, and whoever fails names both operations.
#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/transport/in_process.h"

#include "tests/conformance/transport_conformance.h"

namespace argosy::conformance {
namespace {

using namespace std::chrono_literals;
using test::RankOutcome;
using ::testing::HasSubstr;
using transport::DType;
using transport::ReduceOp;
using transport::Timeout;
using transport::Transport;

constexpr int kRanks = 3;

/// Over Gloo a mismatch is found at the deadline. Every rank must have begun by then, on a machine
/// that others keep busy; a second of patience follows.
constexpr Timeout kShort = 400ms;

/// Groups at a time: nearly all of them wait.
constexpr size_t kGroupsAtOnce = 93;

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
  };
}

/// What each rank has when all of them call it.
std::vector<std::vector<Memory>> results_of(const std::vector<Called>& calls) {
  std::vector<std::vector<Memory>> all(calls.size());
  for (std::vector<Memory>& ranks : all) {
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back(rank);
    }
  }
  const auto transports = transport::in_process_transports(kRanks);
  test::run_ranks(kRanks, [&](int rank) {
    const auto r = static_cast<size_t>(rank);
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i].run(*transports[r], all[i][r], kTimeout);
    }
  });
  return all;
}

/// A group in which one rank does something else.
struct Group {
  size_t most = 0;  ///< what the others call, as a place in the table
  size_t one = 0;   ///< what `odd` calls
  int odd = 0;
  std::shared_ptr<Meeting> meeting{};
};

std::vector<Group> all_pairs(size_t calls) {
  std::vector<Group> groups;
  for (size_t most = 0; most < calls; ++most) {
    for (size_t one = 0; one < calls; ++one) {
      if (most != one) {
        groups.push_back({.most = most, .one = one, .odd = static_cast<int>((most + one * 2) % 3)});
      }
    }
  }
  return groups;
}

void expect_both_named(const CommError& error, const std::string& one, const std::string& other) {
  EXPECT_TRUE(error.context().mismatch) << error.what();
  EXPECT_THAT(error.what(), HasSubstr(one));
  EXPECT_THAT(error.what(), HasSubstr(other));
}

TEST_P(TransportMismatches, NoPairOfCallsPasses) {
  const std::vector<Called> calls = all_calls();
  const std::vector<std::vector<Memory>> results = results_of(calls);
  std::vector<Group> groups = all_pairs(calls.size());
  for (size_t first = 0; first < groups.size(); first += kGroupsAtOnce) {
    const size_t count = std::min(kGroupsAtOnce, groups.size() - first);
    for (size_t i = first; i < first + count; ++i) {
      groups[i].meeting = std::make_shared<Meeting>(test::RankMode::kThreads);
    }
    test::run_ranks(static_cast<int>(count) * kRanks,
                    [&](int index) {
                      const Group& group = groups[first + static_cast<size_t>(index / kRanks)];
                      const int rank = index % kRanks;
                      const size_t mine = rank == group.odd ? group.one : group.most;
                      SCOPED_TRACE(::testing::Message()
                                   << "rank " << group.odd << " calls " << calls[group.one].words
                                   << ", the others " << calls[group.most].words
                                   << "; this is rank " << rank);
                      const auto t = GetParam().make(rank, kRanks, group.meeting->store());
                      t->barrier(kTimeout);
                      Memory memory(rank);
                      try {
                        calls[mine].run(*t, memory, kShort);
                        // It waited for nobody who called something else, and learns it now.
                        EXPECT_EQ(memory, results[mine][static_cast<size_t>(rank)])
                            << "another operation's data";
                        t->barrier(kTimeout);
                        ADD_FAILURE() << "nothing was noticed";
                      } catch (const CommError& e) {
                        expect_both_named(e, calls[group.most].words, calls[group.one].words);
                      }
                    },
                    {.mode = test::RankMode::kThreads, .deadline = 60s});
    for (size_t i = first; i < first + count; ++i) {
      groups[i].meeting.reset();
    }
  }
}

}  // namespace
}  // namespace argosy::conformance
