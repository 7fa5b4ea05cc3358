#include "argosy/transport/leaf_deal.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/even_part.h"
#include "argosy/transport/call.h"
#include "argosy/transport/reduce.h"

namespace argosy::transport {
namespace {

constexpr const char* kWhere = "transport.LeafDeal";
static_assert(LeafDeal::kMostLeaves == int64_t{1} << (kMostWaiting - 1));

/// The leaves of the first half of a node of two leaves and more.
int64_t first_half(int64_t leaves) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(leaves - 1)));
}

TreeNode left_of(const TreeNode& node) {
  return {node.first, first_half(node.leaves)};
}
TreeNode right_of(const TreeNode& node) {
  const int64_t left = first_half(node.leaves);
  return {node.first + left, node.leaves - left};
}

void add_nodes(const TreeNode& node, int64_t begin, int64_t end, std::vector<TreeNode>& nodes) {
  if (begin >= node.end() || end <= node.first) {
    return;
  }
  if (begin <= node.first && node.end() <= end) {
    nodes.push_back(node);
    return;
  }
  add_nodes(left_of(node), begin, end, nodes);
  add_nodes(right_of(node), begin, end, nodes);
}

bool is_node(const TreeNode& node, int64_t total) {
  const std::vector<TreeNode> same = nodes_of_range(node.first, node.end(), total);
  return same.size() == 1 && same.front() == node;
}

/// Two neighbours that are nodes are siblings if together they are a node.
bool are_siblings(const TreeNode& left, const TreeNode& right, int64_t total) {
  return left.end() == right.first && is_node({left.first, left.leaves + right.leaves}, total);
}

struct Held {
  TreeNode node{};
  LeafDeal::Term term{};
};

/// Sorted by their leaves; checked to be nodes that do not overlap.
std::vector<Held> sorted(int64_t leaves, const std::vector<std::vector<TreeNode>>& nodes) {
  std::vector<Held> all;
  for (size_t rank = 0; rank < nodes.size(); ++rank) {
    for (size_t i = 0; i < nodes[rank].size(); ++i) {
      all.push_back({nodes[rank][i], {static_cast<int>(rank), static_cast<int>(i)}});
    }
  }
  std::ranges::sort(all, {}, [](const Held& held) { return held.node.first; });
  int64_t end = 0;
  for (const Held& held : all) {
    ARGOSY_CHECK(held.node.first >= end && is_node(held.node, leaves),
                 kWhere,
                 "rank {} cannot bring leaves {} to {} of {}: {}",
                 held.term.rank,
                 held.node.first,
                 held.node.end() - 1,
                 leaves,
                 held.node.first < end ? "another rank holds one of them"
                                       : "they are no node of the tree of sums");
    end = held.node.end();
  }
  return all;
}

/// Adds siblings as soon as both are there, as one does who goes through the leaves in their order.
std::vector<LeafDeal::Sum> add_up(const std::vector<Held>& all, int64_t leaves) {
  std::vector<LeafDeal::Sum> sums;
  for (const Held& held : all) {
    sums.push_back({.node = held.node, .terms = {held.term}, .merges = {0}});
    while (sums.size() > 1 && are_siblings(sums[sums.size() - 2].node, sums.back().node, leaves)) {
      const LeafDeal::Sum right = std::move(sums.back());
      sums.pop_back();
      LeafDeal::Sum& both = sums.back();
      both.node.leaves += right.node.leaves;
      both.terms.insert(both.terms.end(), right.terms.begin(), right.terms.end());
      both.merges.insert(both.merges.end(), right.merges.begin(), right.merges.end());
      ++both.merges.back();
    }
  }
  return sums;
}

}  // namespace

std::vector<TreeNode> nodes_of_range(int64_t begin, int64_t end, int64_t total) {
  std::vector<TreeNode> nodes;
  add_nodes({0, total}, begin, end, nodes);
  return nodes;
}

LeafDeal::LeafDeal(int64_t leaves, std::vector<std::vector<TreeNode>> nodes)
    : leaves_(leaves), nodes_(std::move(nodes)) {
  ARGOSY_CHECK(leaves >= 1 && leaves <= kMostLeaves,
               kWhere,
               "expected 1 to {} leaves (virtual ranks, or ranks), got {}",
               kMostLeaves,
               leaves);
  sums_ = add_up(sorted(leaves, nodes_), leaves);
  for (size_t rank = 0; rank < nodes_.size() && nodes_.size() > 1; ++rank) {
    const bool added = add_up(sorted(leaves, {nodes_[rank]}), leaves).size() == nodes_[rank].size();
    ARGOSY_CHECK(added, kWhere, "rank {} brings two siblings: it must add them first", rank);
  }
  digest_ = mixed(0, static_cast<uint64_t>(leaves));
  for (const std::vector<TreeNode>& of_rank : nodes_) {
    most_nodes_ = std::max(most_nodes_, static_cast<int>(of_rank.size()));
    digest_ = mixed(digest_, of_rank.size());
    for (const TreeNode& node : of_rank) {
      digest_ = mixed(mixed(digest_, static_cast<uint64_t>(node.first)),
                      static_cast<uint64_t>(node.leaves));
    }
  }
}

LeafDeal LeafDeal::leaves_of(int rank) const {
  std::vector<TreeNode> own;
  for (const TreeNode& node : nodes(rank)) {
    for (int64_t leaf = node.first; leaf < node.end(); ++leaf) {
      own.push_back({leaf, 1});
    }
  }
  return {leaves_, {std::move(own)}};
}

LeafDeal LeafDeal::one_each(int ranks) {
  return in_ranges(ranks, ranks);
}

LeafDeal LeafDeal::in_ranges(int64_t leaves, int ranks) {
  std::vector<std::vector<TreeNode>> nodes;
  for (int rank = 0; rank < ranks; ++rank) {
    const IndexRange share = even_part(leaves, ranks, rank);
    nodes.push_back(nodes_of_range(share.begin, share.end, leaves));
  }
  return {leaves, std::move(nodes)};
}

LeafDeal LeafDeal::of_leaves(int64_t leaves, std::span<const std::vector<int64_t>> held) {
  std::vector<std::vector<TreeNode>> nodes;
  for (const std::vector<int64_t>& of_rank : held) {
    std::vector<std::vector<TreeNode>> alone(1);
    for (const int64_t leaf : of_rank) {
      alone.front().push_back({leaf, 1});
    }
    const LeafDeal of_this_rank(leaves, std::move(alone));
    nodes.emplace_back();
    for (const Sum& sum : of_this_rank.sums()) {
      nodes.back().push_back(sum.node);
    }
  }
  return {leaves, std::move(nodes)};
}

}  // namespace argosy::transport
