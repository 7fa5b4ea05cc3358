#include "argosy/transport/leaf_deal.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/transport/shares.h"

namespace argosy::transport {

// For messages of tests.
// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest's
static void PrintTo(const TreeNode& node, std::ostream* out) {
  *out << '[' << node.first << ", " << node.end() << ')';
}

namespace {

using ::testing::ElementsAre;

/// All nodes of a tree, from the definition.
void add_all(int64_t first, int64_t leaves, std::vector<TreeNode>& nodes) {
  nodes.push_back({first, leaves});
  int64_t half = 1;
  while (half * 2 < leaves) {
    half *= 2;
  }
  if (leaves > 1) {
    add_all(first, half, nodes);
    add_all(first + half, leaves - half, nodes);
  }
}

TEST(LeafDeal, ARangeConsistsOfFewNodes) {
  EXPECT_THAT(nodes_of_range(0, 6, 6), ElementsAre(TreeNode{0, 6}));
  EXPECT_THAT(nodes_of_range(3, 8, 8), ElementsAre(TreeNode{3, 1}, TreeNode{4, 4}));
  EXPECT_THAT(nodes_of_range(4, 7, 7), ElementsAre(TreeNode{4, 3}));
  for (int64_t total = 1; total <= 40; ++total) {
    std::vector<TreeNode> all;
    add_all(0, total, all);
    for (int64_t begin = 0; begin < total; ++begin) {
      for (int64_t end = begin + 1; end <= total; ++end) {
        const std::vector<TreeNode> nodes = nodes_of_range(begin, end, total);
        int64_t next = begin;
        for (const TreeNode& node : nodes) {
          ASSERT_EQ(node.first, next);
          ASSERT_NE(std::ranges::find(all, node), all.end());
          next = node.end();
        }
        ASSERT_EQ(next, end);
        const auto leaves = static_cast<uint64_t>(end - begin);
        ASSERT_LE(nodes.size(), std::max<size_t>(1, 2 * (std::bit_width(leaves) - 1)))
            << begin << " to " << end << " of " << total;
      }
    }
  }
}

TEST(LeafDeal, RangesDifferByOneLeafAtMost) {
  const LeafDeal deal = LeafDeal::in_ranges(8, 3);
  EXPECT_THAT(deal.nodes(0), ElementsAre(TreeNode{0, 2}, TreeNode{2, 1}));
  EXPECT_THAT(deal.nodes(1), ElementsAre(TreeNode{3, 1}, TreeNode{4, 2}));
  EXPECT_THAT(deal.nodes(2), ElementsAre(TreeNode{6, 2}));
  EXPECT_EQ(deal.most_nodes(), 2);
  EXPECT_TRUE(deal.is_whole());
  const LeafDeal spare = LeafDeal::in_ranges(2, 3);
  EXPECT_TRUE(spare.nodes(2).empty());
  EXPECT_TRUE(spare.is_whole());
}

TEST(LeafDeal, OnlySiblingsAreAdded) {
  // Ranks 0 and 2 of four, which share a host: nothing to add.
  const std::vector<std::vector<int64_t>> first{{0}, {2}};
  const LeafDeal host = LeafDeal::of_leaves(4, first);
  ASSERT_EQ(host.sums().size(), 2);
  EXPECT_EQ(host.sums()[0].node, (TreeNode{0, 1}));
  EXPECT_EQ(host.sums()[1].node, (TreeNode{2, 1}));
  EXPECT_FALSE(host.is_whole());
  // 0, 1 and 3: two of them are siblings.
  const std::vector<std::vector<int64_t>> second{{1}, {3}, {0}};
  const LeafDeal other = LeafDeal::of_leaves(4, second);
  ASSERT_EQ(other.sums().size(), 2);
  EXPECT_EQ(other.sums()[0].node, (TreeNode{0, 2}));
  EXPECT_EQ(other.sums()[0].terms[0].rank, 2);
  EXPECT_EQ(other.sums()[0].terms[1].rank, 0);
  EXPECT_EQ(other.sums()[1].node, (TreeNode{3, 1}));
}

TEST(LeafDeal, DigestsTellDealsApart) {
  EXPECT_EQ(LeafDeal::one_each(4).digest(), LeafDeal::in_ranges(4, 4).digest());
  EXPECT_NE(LeafDeal::one_each(4).digest(), LeafDeal::in_ranges(5, 4).digest());
  const std::vector<std::vector<int64_t>> swapped{{1}, {0}};
  EXPECT_NE(LeafDeal::one_each(2).digest(), LeafDeal::of_leaves(2, swapped).digest());
}

TEST(LeafDeal, RefusesWhatIsNoDeal) {
  const auto deal = [](int64_t leaves, std::vector<std::vector<TreeNode>> nodes) {
    return LeafDeal(leaves, std::move(nodes));
  };
  EXPECT_THROW(deal(0, {{}}), UsageError);
  EXPECT_THROW(deal(int64_t{1} << 40, {{}}), UsageError);
  EXPECT_THROW(deal(4, {{{1, 2}}, {}}), UsageError);          // 1 and 2 are no siblings
  EXPECT_THROW(deal(4, {{{4, 1}}, {}}), UsageError);          // outside
  EXPECT_THROW(deal(4, {{{-1, 1}}, {}}), UsageError);         // outside
  EXPECT_THROW(deal(4, {{{0, 2}}, {{1, 1}}}), UsageError);    // twice
  EXPECT_THROW(deal(4, {{{0, 1}, {1, 1}}, {}}), UsageError);  // not added
}

/// What the rank that sends most sends, in times of the data.
double most_sent(const LeafDeal& deal) {
  constexpr int64_t kCount = 1'000'000;
  const std::vector<int64_t> ends = ends_of_shares(deal, kCount);
  double most = 0;
  int64_t begin = 0;
  for (int rank = 0; rank < deal.ranks(); ++rank) {
    const int64_t end = ends[static_cast<size_t>(rank)];
    const double share = static_cast<double>(end - begin) / kCount;
    const auto nodes = static_cast<double>(deal.nodes(rank).size());
    most = std::max(most, nodes * (1 - share) + share * (deal.ranks() - 1));
    begin = end;
  }
  EXPECT_EQ(begin, kCount);
  return most;
}

TEST(Shares, LetEachHostSendAsLittleAsCanBe) {
  const auto hosts = [](const std::vector<int64_t>& leaves) {
    std::vector<std::vector<int64_t>> held;
    int64_t next = 0;
    for (const int64_t count : leaves) {
      held.emplace_back();
      for (int64_t i = 0; i < count; ++i) {
        held.back().push_back(next++);
      }
    }
    return LeafDeal::of_leaves(next, held);
  };
  EXPECT_NEAR(most_sent(hosts({2, 2})), 1.0, 1e-4);
  EXPECT_NEAR(most_sent(hosts({3, 1})), 1.0, 1e-4);
  EXPECT_NEAR(most_sent(hosts({1, 1, 2})), 4.0 / 3, 1e-4);
  EXPECT_NEAR(most_sent(hosts({3, 5})), 1.5, 1e-4);
  EXPECT_NEAR(most_sent(hosts({5, 1, 1, 1})), 2, 0.01);
  EXPECT_THAT(ends_of_shares(LeafDeal::one_each(3), 10), ElementsAre(4, 8, 10));
  EXPECT_THAT(ends_of_shares(LeafDeal::in_ranges(5, 3), 0), ElementsAre(0, 0, 0));
}

}  // namespace
}  // namespace argosy::transport
