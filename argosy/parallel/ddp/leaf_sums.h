#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/parallel/ddp/comm_hook.h"

namespace argosy::parallel::ddp {

/// Adds the gradients of a process's virtual ranks along the tree of LeafDeal.
///
/// A virtual rank's gradients are a leaf. Each leaf comes whole, one bucket after the other. Nodes
/// whose sibling is still to come wait in memory of their own: at most 2⌊log₂k⌋ for k virtual ranks
/// of this process. 16-bit gradients are added in f32. An update may have several averaged backward
/// passes; each has a tree of its own.
class LeafSums final {
 public:
  /// `deal` gives each rank of `group` contiguous leaves.
  LeafSums(std::shared_ptr<const comm::LeafDeal> deal, const comm::Group& group);

  /// Returns for how many nodes `rank` needs memory of its own. `in_f32`: gradients are of 16 bits.
  [[nodiscard]] static int64_t nodes_in_memory(const comm::LeafDeal& deal, int rank, bool in_f32);

  /// Returns how many leaves all ranks have together.
  [[nodiscard]] int64_t leaves_of_all() const { return deal_->leaves(); }
  /// True if each rank of the group has one leaf, so that nothing has to wait.
  [[nodiscard]] bool one_each() const { return deal_->leaves() == deal_->ranks(); }
  /// True on a process that has no virtual rank.
  [[nodiscard]] bool is_spare() const { return merges_.empty(); }

  /// Gradients of f32 and f64 are rounded to this type, as leaves and as the average.
  void round_to(at::ScalarType type) { rounding_ = type; }

  /// Adds nothing from now on, for a hook that needs the gradients of each leaf: keep() keeps a
  /// copy of them, and take() takes the place of average().
  void keep_whole() { keeps_whole_ = true; }

  /// Forgets what waits. Call it where an update begins. Memory stays for the nodes to come.
  void restart() noexcept;
  /// Call it when the buckets are new.
  void follow_buckets() noexcept;
  /// Adds the bucket's gradients of a leaf that is not the last one. `pass` counts the averaged
  /// backward passes of the update.
  void keep(size_t pass, int64_t leaf, size_t bucket, const at::Tensor& gradients);
  /// Adds those of the last leaf, and starts the average over all leaves into `gradients`. A spare
  /// adds nothing.
  /// Errors: UsageError if the leaves before had another number of passes.
  [[nodiscard]] BucketWork average(size_t pass,
                                   size_t bucket,
                                   const at::Tensor& gradients,
                                   comm::AllReduceOptions options);
  /// Returns the bucket's gradients of the leaves before the last one, in their order, after
  /// keep_whole(). Errors: as average().
  [[nodiscard]] std::vector<at::Tensor> take(size_t pass, size_t bucket);
  /// Errors: UsageError if the earlier leaves made more than `passes` averaged passes.
  void check_all_taken(size_t passes) const;

 private:
  using Stack = std::vector<at::Tensor>;

  void check_complete(size_t nodes, size_t expected) const;
  void add_last(size_t bucket, const at::Tensor& gradients, const at::Tensor& sum, Stack& nodes);
  [[nodiscard]] Stack& waiting(size_t pass, size_t bucket);
  [[nodiscard]] at::Tensor room(size_t bucket, const at::Tensor& gradients);
  [[nodiscard]] bool rounds(at::ScalarType type) const;
  void round(const at::Tensor& gradients) const;
  [[nodiscard]] at::ScalarType type_of_sums(at::ScalarType type) const;

  std::shared_ptr<const comm::LeafDeal> deal_;
  comm::Group group_;
  std::vector<uint8_t> merges_;  // after each leaf, how often the two highest nodes are added
  std::optional<at::ScalarType> rounding_{};
  bool keeps_whole_ = false;
  std::vector<std::vector<Stack>> waiting_{};  // of each pass and bucket, the nodes
  std::vector<Stack> free_{};                  // of each bucket, memory for further nodes
};

}  // namespace argosy::parallel::ddp
