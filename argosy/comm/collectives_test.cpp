/// Closed-form results of every collective, on 1, 2, 3 and 5 ranks as threads.
#include "argosy/comm/collectives.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <future>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/single_tensor.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using test::error_text;
using testing::with_threads;
using transport::ReduceOp;

class CollectivesTest : public ::testing::TestWithParam<int> {};

/// Element j of rank r: 10 r + j.
at::Tensor values(int rank, const std::vector<int64_t>& shape, at::ScalarType type = at::kFloat) {
  const int64_t n = c10::multiply_integers(shape);
  return (at::arange(n, at::kLong) + 10 * rank).reshape(shape).to(type);
}

TEST_P(CollectivesTest, AllReduceSumAndAverage) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size();
    at::Tensor sum = values(world.rank(), {3, 4});
    all_reduce(sum, world);
    EXPECT_TRUE(sum.equal(n * values(0, {3, 4}) + 10 * (n * (n - 1) / 2)));
    at::Tensor average = at::full({5}, world.rank(), at::kDouble);
    all_reduce(average, world, {.op = ReduceOp::kAvg});
    EXPECT_TRUE(average.equal(at::full({5}, (n - 1) / 2.0, at::kDouble)));
  });
}

/// Leaf `leaf` of a sum in which nearly every other order gives other bits.
at::Tensor leaf_of(int64_t leaf, at::ScalarType type = at::kFloat) {
  return ((at::arange(50, at::kDouble) + 1) * (leaf + 1) * 12.9898).sin().mul(1e3).to(type);
}

/// T(n leaves) = T(first m) + T(rest), m the largest power of two below n.
at::Tensor tree_sum(int64_t first, int64_t n) {
  if (n == 1) {
    return leaf_of(first);
  }
  const auto half = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n - 1)));
  return tree_sum(first, half) + tree_sum(first + half, n - half);
}

TEST_P(CollectivesTest, AllReduceOfLeavesHasOneOrder) {
  with_threads(GetParam(), [](Group& world) {
    for (const int64_t leaves : {5, 8, 11}) {
      const auto deal = std::make_shared<LeafDeal>(LeafDeal::in_ranges(leaves, world.size()));
      std::vector<at::Tensor> mine;
      for (const transport::TreeNode& node : deal->nodes(world.rank())) {
        for (int64_t leaf = node.first; leaf < node.end(); ++leaf) {
          mine.push_back(leaf_of(leaf));
        }
      }
      EXPECT_TRUE(all_reduce_leaves(mine, deal, world).equal(tree_sum(0, leaves)));
      EXPECT_TRUE(all_reduce_leaves(mine, deal, world, {.op = ReduceOp::kAvg})
                      .equal(tree_sum(0, leaves) / static_cast<double>(leaves)));
      LeafTensors nodes{.deal = deal, .nodes = {}, .result = at::empty({5, 10}).t()};
      for (const transport::TreeNode& node : deal->nodes(world.rank())) {  // not contiguous
        nodes.nodes.push_back(tree_sum(node.first, node.leaves).reshape({5, 10}).t());
      }
      const at::Tensor kept = nodes.nodes.front().clone();
      all_reduce_async(nodes, world).wait();
      EXPECT_TRUE(nodes.result.t().reshape({50}).equal(tree_sum(0, leaves)));
      EXPECT_TRUE(nodes.nodes.front().equal(kept));
    }
  });
}

TEST(LeafTensorsTest, NamesWhatDoesNotFit) {
  with_threads(2, [](Group& world) {
    const auto deal = std::make_shared<LeafDeal>(LeafDeal::in_ranges(6, 2));
    const auto error = [&](const LeafTensors& leaves) {
      return error_text<UsageError>([&] { all_reduce(leaves, world); });
    };
    const at::Tensor one = at::ones({3});
    EXPECT_EQ(error({.nodes = {one}, .result = one}), "[comm.all_reduce] leaves.deal is empty");
    EXPECT_EQ(error({.deal = deal, .nodes = {one}, .result = one}),
              fmt::format("[comm.all_reduce] rank {} brings 2 nodes of the tree, got 1 tensors",
                          world.rank()));
    EXPECT_EQ(error({.deal = deal, .nodes = {one, at::ones({4})}, .result = one}),
              "[comm.all_reduce] a node must be like the result, f32 [3], got f32 [4]");
    const auto three = std::make_shared<LeafDeal>(LeafDeal::in_ranges(6, 3));
    EXPECT_EQ(error({.deal = three, .nodes = {one}, .result = one}),
              "[comm.all_reduce] the leaves are dealt to 3 ranks, and the group has 2");
    EXPECT_EQ(error_text<UsageError>([&] { (void)all_reduce_leaves({one}, deal, world); }),
              "[comm.all_reduce_leaves] expected 3 leaves, one for each of this rank's, got 1");
  });
}

TEST_P(CollectivesTest, AllReduceEveryOpAndType) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size();
    for (const auto type : {at::kFloat,
                            at::kDouble,
                            at::kHalf,
                            at::kBFloat16,
                            at::kChar,
                            at::kByte,
                            at::kInt,
                            at::kLong}) {
      const auto check = [&](ReduceOp op, double expected) {
        at::Tensor t = at::full({3}, world.rank() + 1).to(type);
        all_reduce(t, world, {.op = op});
        EXPECT_TRUE(t.equal(at::full({3}, expected).to(type)))
            << to_string(op) << " " << type << " " << t;
      };
      check(ReduceOp::kSum, n * (n + 1) / 2.0);
      check(ReduceOp::kMin, 1);
      check(ReduceOp::kMax, n);
      check(ReduceOp::kProduct, std::tgamma(n + 1.0));
    }
    at::Tensor bits = at::full({2}, 1 << world.rank(), at::kInt);
    all_reduce(bits, world, {.op = ReduceOp::kBor});
    EXPECT_TRUE(bits.equal(at::full({2}, (1 << n) - 1, at::kInt)));
    at::Tensor any = at::full({1}, world.rank() == n - 1, at::kBool);
    all_reduce(any, world);
    EXPECT_TRUE(any.item<bool>());
  });
}

TEST_P(CollectivesTest, AnActionRunsAfterWhatWasIssuedBeforeIt) {
  with_threads(GetParam(), [](Group& group) {
    at::Tensor sum = at::ones({1000});
    const Work reduced = all_reduce_async(sum, group);
    float seen = 0;
    run_in_order([&] { seen = sum[999].item<float>(); }, group).wait();
    EXPECT_EQ(seen, static_cast<float>(group.size()));
    reduced.wait();
    const Work failed = run_in_order([] { throw std::runtime_error("the action's own"); }, group);
    EXPECT_THROW(failed.wait(), std::exception);
    bool ran = false;
    EXPECT_ANY_THROW(run_in_order([&] { ran = true; }, group).wait());
    EXPECT_FALSE(ran) << "after a failure nothing runs any more";
  });
}

TEST_P(CollectivesTest, ReduceChangesTheRootOnly) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size();
    for (int root = 0; root < n; ++root) {
      at::Tensor t = values(world.rank(), {4});
      reduce(t, world, {.root = root});
      const at::Tensor expected = world.rank() == root ? n * values(0, {4}) + 10 * (n * (n - 1) / 2)
                                                       : values(world.rank(), {4});
      EXPECT_TRUE(t.equal(expected));
    }
  });
}

TEST_P(CollectivesTest, BroadcastFromEachRoot) {
  with_threads(GetParam(), [](Group& world) {
    for (int root = 0; root < world.size(); ++root) {
      at::Tensor t = values(world.rank(), {2, 3}, at::kLong);
      broadcast(t, world, {.root = root});
      EXPECT_TRUE(t.equal(values(root, {2, 3}, at::kLong)));
    }
  });
}

TEST_P(CollectivesTest, AllGatherInRankOrder) {
  with_threads(GetParam(), [](Group& world) {
    const auto parts = all_gather(values(world.rank(), {2, 2}), world);
    ASSERT_EQ(static_cast<int>(parts.size()), world.size());
    std::vector<at::Tensor> into(parts.size());
    for (size_t i = 0; i < into.size(); ++i) {
      into[i] = at::empty({2, 2});
    }
    all_gather(into, values(world.rank(), {2, 2}), world);
    std::vector<at::Tensor> later(parts.size());
    for (at::Tensor& part : later) {
      part = at::empty({2, 2}).t();  // not contiguous: written back through a copy
    }
    all_gather_async(later, values(world.rank(), {2, 2}), world).wait();
    for (int rank = 0; rank < world.size(); ++rank) {
      EXPECT_TRUE(parts[static_cast<size_t>(rank)].equal(values(rank, {2, 2})));
      EXPECT_TRUE(into[static_cast<size_t>(rank)].equal(values(rank, {2, 2})));
      EXPECT_TRUE(later[static_cast<size_t>(rank)].equal(values(rank, {2, 2})));
    }
  });
}

TEST_P(CollectivesTest, AllGatherUnevenJoinsRows) {
  with_threads(GetParam(), [](Group& world) {
    // Rank r brings r rows (rank 0 none), of a type that travels as bytes too.
    for (const auto type : {at::kFloat, at::kShort}) {
      const at::Tensor mine = at::full({world.rank(), 3}, world.rank()).to(type);
      const at::Tensor all = all_gather_uneven(mine, world);
      const int n = world.size();
      ASSERT_EQ(all.sizes().vec(), (std::vector<int64_t>{n * (n - 1) / 2, 3}));
      int64_t row = 0;
      for (int rank = 0; rank < n; ++rank) {
        for (int i = 0; i < rank; ++i, ++row) {
          EXPECT_TRUE(all[row].equal(at::full({3}, rank).to(type)));
        }
      }
    }
  });
}

TEST_P(CollectivesTest, GatherAndScatter) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size();
    for (int root = 0; root < n; ++root) {
      const auto parts = gather(values(world.rank(), {3}), world, {.root = root});
      ASSERT_EQ(static_cast<int>(parts.size()), world.rank() == root ? n : 0);
      for (size_t rank = 0; rank < parts.size(); ++rank) {
        EXPECT_TRUE(parts[rank].equal(values(static_cast<int>(rank), {3})));
      }
      at::Tensor mine = at::empty({3});
      scatter(mine, parts, world, {.root = root});
      EXPECT_TRUE(mine.equal(values(world.rank(), {3})));
      // The same into tensors of the caller's, and without waiting in between.
      std::vector<at::Tensor> into;
      for (size_t i = 0; i < parts.size(); ++i) {
        into.push_back(at::empty({3}));
      }
      const at::Tensor back = at::empty({3});
      const Work gathered = gather_async(into, values(world.rank(), {3}), world, {.root = root});
      gathered.wait();
      scatter_async(back, into, world, {.root = root}).wait();
      EXPECT_TRUE(back.equal(values(world.rank(), {3})));
    }
  });
}

TEST_P(CollectivesTest, ReduceScatterGivesEachItsPart) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size();
    std::vector<at::Tensor> inputs;
    for (int part = 0; part < n; ++part) {
      inputs.push_back(at::full({2, 2}, 100 * part + world.rank(), at::kLong));
    }
    at::Tensor output = at::empty({2, 2}, at::kLong);
    reduce_scatter(output, inputs, world);
    const int64_t expected = n * 100 * world.rank() + n * (n - 1) / 2;
    EXPECT_TRUE(output.equal(at::full({2, 2}, expected, at::kLong)));
    at::Tensor highest = at::empty({2, 2}, at::kLong);
    reduce_scatter_async(highest, inputs, world, {.op = ReduceOp::kMax}).wait();
    EXPECT_TRUE(highest.equal(at::full({2, 2}, 100 * world.rank() + n - 1, at::kLong)));
  });
}

TEST_P(CollectivesTest, AllToAllWithUnevenShapes) {
  with_threads(GetParam(), [](Group& world) {
    // Rank i sends i + j elements of value 10 i + j to rank j.
    const int me = world.rank();
    for (const auto type : {at::kFloat, at::kComplexFloat}) {
      std::vector<at::Tensor> inputs;
      std::vector<at::Tensor> outputs;
      for (int peer = 0; peer < world.size(); ++peer) {
        inputs.push_back(at::full({me + peer}, 10 * me + peer).to(type));
        outputs.push_back(at::zeros({me + peer}, type));
      }
      all_to_all(outputs, inputs, world);
      for (int peer = 0; peer < world.size(); ++peer) {
        EXPECT_TRUE(outputs[static_cast<size_t>(peer)].equal(
            at::full({me + peer}, 10 * peer + me).to(type)));
        outputs[static_cast<size_t>(peer)].zero_();
      }
      all_to_all_async(outputs, inputs, world).wait();
      EXPECT_TRUE(outputs.back().equal(
          at::full({me + world.size() - 1}, 10 * (world.size() - 1) + me).to(type)));
    }
  });
}

TEST_P(CollectivesTest, AsyncOperationsKeepTheirOrder) {
  with_threads(GetParam(), [](Group& world) {
    // x <- sum over ranks, then doubled by adding the broadcast of it: only right in this order.
    const int n = world.size();
    std::vector<at::Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 50; ++i) {
      tensors.push_back(at::full({7}, i + world.rank(), at::kLong));
      works.push_back(all_reduce_async(tensors.back(), world));
      works.push_back(broadcast_async(tensors.back(), world, {.root = i % n}));
      works.push_back(all_reduce_async(tensors.back(), world, {.op = ReduceOp::kMax}));
    }
    barrier(world);  // behind all of them
    for (const Work& work : works) {
      EXPECT_TRUE(work.is_success());
    }
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(
          tensors[static_cast<size_t>(i)].equal(at::full({7}, n * i + n * (n - 1) / 2, at::kLong)));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest, ::testing::Values(1, 2, 3, 5));

/// A collective with a timeout of its own.
struct Limited {
  const char* name;
  std::function<void(Group&, std::chrono::milliseconds)> call;
};

class TimeoutTest : public ::testing::TestWithParam<Limited> {};

/// The group's own timeout is longer than the test may last.
TEST_P(TimeoutTest, IsTheOptionsNotTheGroups) {
  std::promise<void> over;
  const std::shared_future<void> waited = over.get_future().share();
  with_threads(2,
               [&](Group& world) {
                 if (world.rank() == 1) {
                   waited.wait();  // here, and never calls it
                   return;
                 }
                 // Less the time until a thread took it.
                 EXPECT_THAT(error_text<TimeoutError>(
                                 [&] { GetParam().call(world, std::chrono::milliseconds(20)); }),
                             ::testing::ContainsRegex("timed out after (20|1?[0-9]) ms"));
                 over.set_value();
               },
               {.timeout = std::chrono::hours(1)});
}

const at::Tensor kOne = at::zeros({1});
const at::Tensor kTwo = at::zeros({2});
const std::vector<at::Tensor> kParts = {at::zeros({1}), at::zeros({1})};

// Of an operation with a root, the rank that waits for the other.
const Limited kLimited[] = {
    {"all_reduce", [](Group& g, auto t) { all_reduce(kOne, g, {.timeout = t}); }},
    {"all_reduce_async",
     [](Group& g, auto t) { all_reduce_async(kOne, g, {.timeout = t}).wait(); }},
    {"reduce", [](Group& g, auto t) { reduce(kOne, g, {.timeout = t}); }},
    {"reduce_async", [](Group& g, auto t) { reduce_async(kOne, g, {.timeout = t}).wait(); }},
    {"broadcast_async",
     [](Group& g, auto t) { broadcast_async(kOne, g, {.root = 1, .timeout = t}).wait(); }},
    {"all_gather_async",
     [](Group& g, auto t) { all_gather_async(kParts, kOne, g, {.timeout = t}).wait(); }},
    {"gather_async",
     [](Group& g, auto t) { gather_async(kParts, kOne, g, {.timeout = t}).wait(); }},
    {"scatter_async",
     [](Group& g, auto t) { scatter_async(kOne, {}, g, {.root = 1, .timeout = t}).wait(); }},
    {"reduce_scatter_async",
     [](Group& g, auto t) { reduce_scatter_async(kOne, kParts, g, {.timeout = t}).wait(); }},
    {"all_to_all_async",
     [](Group& g, auto t) { all_to_all_async(kParts, kParts, g, {.timeout = t}).wait(); }},
    {"recv_async", [](Group& g, auto t) { recv_async(kOne, 1, g, {.timeout = t}).wait(); }},
    {"all_gather_into_tensor_async",
     [](Group& g, auto t) { all_gather_into_tensor_async(kTwo, kOne, g, {.timeout = t}).wait(); }},
    {"reduce_scatter_tensor_async",
     [](Group& g, auto t) { reduce_scatter_tensor_async(kOne, kTwo, g, {.timeout = t}).wait(); }},
    {"all_to_all_single_async",
     [](Group& g, auto t) { all_to_all_single_async(kTwo, kTwo, g, {.timeout = t}).wait(); }},
    {"broadcast", [](Group& g, auto t) { broadcast(kOne, g, {.root = 1, .timeout = t}); }},
    {"all_gather", [](Group& g, auto t) { (void)all_gather(kOne, g, {.timeout = t}); }},
    {"all_gather_into", [](Group& g, auto t) { all_gather(kParts, kOne, g, {.timeout = t}); }},
    {"all_gather_uneven",
     [](Group& g, auto t) { (void)all_gather_uneven(kOne, g, {.timeout = t}); }},
    {"gather", [](Group& g, auto t) { gather(kParts, kOne, g, {.timeout = t}); }},
    {"scatter", [](Group& g, auto t) { scatter(kOne, {}, g, {.root = 1, .timeout = t}); }},
    {"reduce_scatter", [](Group& g, auto t) { reduce_scatter(kOne, kParts, g, {.timeout = t}); }},
    {"all_to_all", [](Group& g, auto t) { all_to_all(kParts, kParts, g, {.timeout = t}); }},
    {"barrier", [](Group& g, auto t) { barrier(g, {.timeout = t}); }},
    {"barrier_async", [](Group& g, auto t) { barrier_async(g, {.timeout = t}).wait(); }},
    {"recv", [](Group& g, auto t) { recv(kOne, 1, g, {.timeout = t}); }},
    {"all_gather_object",
     [](Group& g, auto t) { (void)all_gather_object("a", g, {.timeout = t}); }},
    {"broadcast_object",
     [](Group& g, auto t) { (void)broadcast_object("", g, {.root = 1, .timeout = t}); }},
    {"gather_object", [](Group& g, auto t) { (void)gather_object("a", g, {.timeout = t}); }},
    {"scatter_object",
     [](Group& g, auto t) { (void)scatter_object({}, g, {.root = 1, .timeout = t}); }},
    {"all_gather_into_tensor",
     [](Group& g, auto t) { all_gather_into_tensor(kTwo, kOne, g, {.timeout = t}); }},
    {"reduce_scatter_tensor",
     [](Group& g, auto t) { reduce_scatter_tensor(kOne, kTwo, g, {.timeout = t}); }},
    {"all_to_all_single",
     [](Group& g, auto t) { all_to_all_single(kTwo, kTwo, g, {.timeout = t}); }},
};
INSTANTIATE_TEST_SUITE_P(Each, TimeoutTest, ::testing::ValuesIn(kLimited), [](const auto& info) {
  return std::string(info.param.name);
});

TEST(CollectiveArguments, ListsOfOtherRanksThanTheRootAreRefused) {
  with_threads(2, [](Group& world) {
    if (world.rank() == 1) {
      EXPECT_THAT(error_text<UsageError>([&] { scatter(kOne, kParts, world); }),
                  ::testing::HasSubstr("only the root, rank 0, gives inputs; this rank gave 2"));
      EXPECT_THAT(error_text<UsageError>([&] { gather(kParts, kOne, world); }),
                  ::testing::HasSubstr("gives outputs"));
    }
  });
}

}  // namespace
}  // namespace argosy::comm
