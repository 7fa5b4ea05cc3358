#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace argosy::transport {

/// Some neighbouring leaves of a tree of sums: `first` to `first + leaves - 1`.
struct TreeNode {
  int64_t first = 0;
  int64_t leaves = 1;

  [[nodiscard]] int64_t end() const { return first + leaves; }
  friend bool operator==(const TreeNode&, const TreeNode&) = default;
};

/// Where the leaves of a sum lie: which rank of a group holds which nodes of the tree.
///
/// A sum over n leaves has one order, whoever computes it: T(1 leaf) is the leaf; T(n leaves) is
/// T(the first m) + T(the others), m the largest power of two below n. The leaves are the ranks of
/// the group in their order, or virtual ranks. A rank that holds several leaves adds those that are
/// siblings and brings the nodes that remain. Only siblings are ever added. So neither the number
/// of ranks nor their places change a bit of the sum.
///
/// Immutable, so threads may share it. Ranks that sum together need equal deals.
class LeafDeal final {
 public:
  /// With more of them more sums could wait at a time than reduce() has room for.
  static constexpr int64_t kMostLeaves = 32768;

  /// One leaf for each rank, in the order of the group.
  [[nodiscard]] static LeafDeal one_each(int ranks);
  /// `leaves` leaves in ranges, in the order of the ranks; the first ranks have one more where they
  /// cannot have equally many. Ranks beyond the number of leaves have none.
  [[nodiscard]] static LeafDeal in_ranges(int64_t leaves, int ranks);
  /// The leaves that each rank holds, which need not be neighbours, of a tree of `leaves`. All
  /// ranks together may hold a part of the tree only. Errors: UsageError for a leaf that is outside
  /// of the tree, or held twice.
  [[nodiscard]] static LeafDeal of_leaves(int64_t leaves,
                                          std::span<const std::vector<int64_t>> held);
  /// The same with the nodes that each rank holds, siblings added.
  /// Errors: UsageError for what is no node of the tree, overlaps another, or is a sibling of
  /// another on the same rank.
  LeafDeal(int64_t leaves, std::vector<std::vector<TreeNode>> nodes);

  [[nodiscard]] int ranks() const { return static_cast<int>(nodes_.size()); }
  [[nodiscard]] int64_t leaves() const { return leaves_; }
  /// The nodes that `rank` brings, in the order of their leaves.
  [[nodiscard]] std::span<const TreeNode> nodes(int rank) const {
    return nodes_[static_cast<size_t>(rank)];
  }
  /// Returns how `rank` alone adds its leaves, each a node.
  [[nodiscard]] LeafDeal leaves_of(int rank) const;
  /// The most nodes that one rank brings.
  [[nodiscard]] int most_nodes() const { return most_nodes_; }

  /// A node that a rank brings: the `index`-th of its nodes.
  struct Term {
    int rank = 0;
    int index = 0;
  };
  /// A sum of the ranks' nodes, and its order. Terms are put on a stack in turn; after the i-th one
  /// the two highest are added merges[i] times.
  struct Sum {
    TreeNode node{};
    std::vector<Term> terms{};
    std::vector<uint8_t> merges{};
  };
  /// What remains when all siblings are added: one sum, the tree's, if the ranks hold all leaves.
  [[nodiscard]] const std::vector<Sum>& sums() const { return sums_; }
  [[nodiscard]] bool is_whole() const {
    return sums_.size() == 1 && sums_.front().node.leaves == leaves_;
  }
  /// Equal for equal deals.
  [[nodiscard]] uint64_t digest() const { return digest_; }

 private:
  int64_t leaves_;
  std::vector<std::vector<TreeNode>> nodes_;
  std::vector<Sum> sums_{};
  int most_nodes_ = 0;
  uint64_t digest_ = 0;
};

/// Returns the fewest nodes of a tree of `total` leaves that consist of leaves `begin` to `end -
/// 1`: at most 2⌊log₂k⌋ for k ≥ 2 of them.
[[nodiscard]] std::vector<TreeNode> nodes_of_range(int64_t begin, int64_t end, int64_t total);

}  // namespace argosy::transport
