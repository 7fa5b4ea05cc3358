#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/parallel/ddp/bucket_set.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/leaf_sums.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/stats.h"

namespace argosy::parallel::ddp {

/// Reduces buckets: starts each reduction, by a communication hook or an all-reduce, and waits for
/// all of them. Only this class and LeafSums decide how gradients become an average.
class BucketReduction final {
 public:
  /// Table, buckets and leaves must outlive it. `timeout` applies to each operation; zero means the
  /// group's. `exact`: see comm::AllReduceOptions.
  BucketReduction(const ParameterTable& table,
                  BucketSet& buckets,
                  LeafSums& leaves,
                  const comm::Group& group,
                  std::chrono::milliseconds timeout,
                  bool exact);

  /// Errors: UsageError if there is a hook already, `hook` is empty, or it is not one of ours where
  /// ranks have several leaves.
  void set_hook(CommHook hook, std::string name);
  /// The same with a hook that sees the gradients of each leaf.
  void set_hook_of_leaves(CommHook hook, std::string name);
  /// Call it when the leaves are dealt anew. Errors: as above.
  void follow_leaves();
  [[nodiscard]] bool has_hook() const { return hook_ != nullptr; }
  [[nodiscard]] const std::string& hook_name() const { return hook_name_; }
  /// Call it when a pass begins, or when one was given up. Ranks compare `place` at each reduction
  /// of the pass.
  void restart(const transport::TrainingPlace& place = {}) noexcept;
  /// Returns the options for each reduction of this pass.
  [[nodiscard]] comm::AllReduceOptions options(comm::ReduceOp op) const;
  /// Starts the reduction of a bucket. Where buckets are cut, the memory of earlier ones goes as
  /// soon as they are reduced. `ready` is the number of the model's gradients that are
  /// ready. `pass` counts the averaged passes of the update.
  void send(size_t bucket, size_t pass, size_t ready);
  /// Makes wait() also wait for other work of this pass.
  void add(comm::Work work) { others_.push_back(std::move(work)); }
  /// Blocks until everything that was started has ended. Gradients are then the sums over all
  /// ranks, divided by `divisor`.
  void wait(int divisor);

  /// Returns when the last pass that wait() completed communicated, and how many passes it has
  /// completed.
  [[nodiscard]] const CommunicationTimes& times() const { return times_; }

 private:
  [[nodiscard]] bool gives_parts() const {
    return buckets_.is_cut() && leaves_.one_each() && hook_ == nullptr;
  }
  [[nodiscard]] BucketWork by_hook(size_t bucket, size_t pass);
  [[nodiscard]] BucketWork scatter(size_t bucket) const;
  void settle(size_t bucket);
  void settle_early();

  const ParameterTable& table_;
  BucketSet& buckets_;
  LeafSums& leaves_;
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  bool exact_;
  CommHook hook_{};
  std::string hook_name_ = "average";
  bool hook_sees_leaves_ = false;
  transport::TrainingPlace place_{};
  std::vector<BucketWork> sent_{};
  size_t settled_ = 0;  // of these
  std::vector<comm::Work> others_{};
  CommunicationTimes::Moment begun_{};
  CommunicationTimes times_{};
};

}  // namespace argosy::parallel::ddp
