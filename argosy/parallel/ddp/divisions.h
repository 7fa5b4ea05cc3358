#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "argosy/comm/group.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/divided_step.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/sharded_buckets.h"
#include "argosy/parallel/ddp/shared_part.h"

namespace argosy::parallel::ddp {

/// The optimizers whose steps the ranks of one wrapper divide. Only one optimizer at a time divides
/// a parameter's update: the last one that was given.
class Divisions final {
 public:
  /// `values` is the parameters' memory; with nullptr steps cannot be divided.
  Divisions(std::shared_ptr<SharedPart> values,
            const comm::Group& group,
            std::chrono::milliseconds timeout);
  /// Afterwards, each rank's changes of parameters are its own.
  ~Divisions();
  Divisions(const Divisions&) = delete;
  Divisions& operator=(const Divisions&) = delete;
  Divisions(Divisions&&) = delete;
  Divisions& operator=(Divisions&&) = delete;

  /// Ends the division of this optimizer's steps, and of others that share a parameter with it.
  /// Only this rank does so, because other ranks may have released their optimizers. Nobody writes
  /// to shared parameters before agree() follows.
  void end(const optim::OptimizerImpl& optimizer);
  /// For a rank that has finished and makes no more steps: the others then make theirs alone.
  void end_all();

  /// Collective. Errors: UsageError that names what differs between ranks.
  void agree(const optim::OptimizerImpl& optimizer, const DivideOptions& options) const;
  /// Call it after agree(). Collective. Returns false, on all ranks, if there is nothing to divide.
  bool add(const std::shared_ptr<optim::OptimizerImpl>& optimizer, const DivideOptions& options);

  /// Divides by parts of the buckets instead, whose plan is of these parameters. Collective.
  void add_sharded(const std::shared_ptr<optim::OptimizerImpl>& optimizer,
                   engine::NamedTensors parameters,
                   const BucketPlan& plan,
                   bool whole_gradients = false);
  /// True if it has divided the steps of a living optimizer so.
  [[nodiscard]] bool shards() const;
  /// Those optimizers.
  [[nodiscard]] std::vector<std::shared_ptr<optim::OptimizerImpl>> sharded_optimizers() const;
  /// Calls `tell` where one of them begins a step; empty: nobody is told.
  void tell_steps_by(const std::function<void()>& tell);
  /// Call it when the buckets are new. Collective.
  void follow_buckets(const BucketPlan& plan);

  /// Ends the sharing while each rank changes the parameters itself, or restores it. Collective if
  /// a division shares parameters. A rank that has released its optimizer takes part.
  void unshare_parameters() { share(&DividedStep::unshare); }
  void share_parameters() { share(&DividedStep::share); }
  /// Call it after the parameters' strides changed: those of the optimizers' state then follow.
  /// Collective if steps are sharded.
  void follow_layout();

 private:
  struct Divided {
    std::weak_ptr<optim::OptimizerImpl> optimizer{};
    std::weak_ptr<DividedStep> step{};  ///< owned by the optimizer: sharing ends with the division
    bool share_parameters = false;
    std::weak_ptr<ShardedBuckets> sharded{};
  };
  using Change = std::function<void(ShardedBuckets&)>;
  void change_sharded(const Change& change);

  void share(void (DividedStep::*change)());

  std::shared_ptr<SharedPart> values_;
  comm::Group group_;
  std::chrono::milliseconds timeout_;
  std::vector<Divided> divided_{};  // of this rank's living optimizers; other ranks may have more
  bool sharing_ = false;            // some division was asked to share, on all ranks
};

}  // namespace argosy::parallel::ddp
