#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/grad_hook.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/backward_pass.h"
#include "argosy/parallel/ddp/bucket_reduction.h"
#include "argosy/parallel/ddp/bucket_set.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/early_updates.h"
#include "argosy/parallel/ddp/leaf_sums.h"
#include "argosy/parallel/ddp/micro_batch.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/pass_checks.h"
#include "argosy/parallel/ddp/set_aside.h"
#include "argosy/parallel/ddp/spares.h"
#include "argosy/parallel/ddp/sparse_gradients.h"
#include "argosy/parallel/ddp/stats.h"
#include "argosy/parallel/ddp/unused_parameters.h"

namespace argosy::parallel::ddp {

/// The part of a join session that the reducer needs: see join.h.
class UnevenInputs {
 public:
  virtual ~UnevenInputs() = default;
  /// Tells the ranks that have finished that a reduction follows.
  virtual void announce_backward() = 0;
  /// Returns, after the announcement, the number by which the sums of this pass are divided.
  [[nodiscard]] virtual int divisor() = 0;
};

/// Averages the gradients of a ParameterTable over a group while backward runs.
///
/// A backward pass begins with the first sign of a backward() (a hook on an output, or the first
/// gradient). It ends inside the same backward(), when autograd's engine has nothing left to do.
/// Meanwhile each gradient is brought into its bucket (BucketSet), and a complete bucket is sent
/// (BucketReduction) as soon as all earlier ones were (BackwardPass). The reducer listens to
/// autograd and tells its parts what to do; docs/design/ddp.md draws the states.
///
/// Not thread-safe: forward and backward of one wrapper come from one thread at a time. The hooks
/// of CPU parameters run in the thread that called backward(). Those of parameters on another
/// device run in autograd's one thread for that device, while the caller waits. So ranks that are
/// threads of one process need a device each. Communication hooks are called without a lock held.
class Reducer final : public std::enable_shared_from_this<Reducer> {
 public:
  /// The table must outlive the reducer.
  /// `plan`: of buckets that stay.
  /// `sparse`: weights whose gradients travel beside the buckets.
  static std::shared_ptr<Reducer> create(
      const ParameterTable& table,
      const SparseGradients& sparse,
      const comm::Group& group,
      const DdpOptions& options,
      const std::shared_ptr<const comm::LeafDeal>& deal,
      const std::optional<BucketPlan>& plan = std::nullopt,
      const std::shared_ptr<sharded::MemoryPool>& pool = nullptr);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  Reducer(Reducer&&) = delete;
  Reducer& operator=(Reducer&&) = delete;

  /// Errors: UsageError if an earlier backward pass failed, or one is running.
  void check_ready_for_forward() const;
  /// True if the buckets are due for their one rebuild; equal on all ranks.
  [[nodiscard]] bool rebuild_due() const;
  /// Makes new buckets in the order in which the gradients of `root` arrived. Returns true if that
  /// changed them. Collective.
  bool rebuild(int root);
  /// Gives each rank only its part of the buckets from now on, in this pool, or everything again.
  /// Collective. Errors: UsageError in a backward pass.
  void scatter(const std::shared_ptr<sharded::MemoryPool>& pool);
  [[nodiscard]] bool scatters() const { return buckets_.is_cut(); }
  [[nodiscard]] const BucketPlan& plan() const { return buckets_.plan(); }
  /// Call it after the parameters' strides changed in the same memory.
  void follow_layout();
  /// Deals the leaves anew, between two updates. Errors: UsageError for a hook that cannot follow.
  void deal(const std::shared_ptr<const comm::LeafDeal>& deal);
  /// Says to which micro-batch the passes that follow belong. Gradients are then averaged over the
  /// virtual ranks in the passes of the last micro-batch of the last of them.
  /// Errors: UsageError if gradients or parameters are not as an earlier micro-batch left them.
  void begin(const MicroBatch& micro_batch);
  /// Ends an update's micro-batches. Returns true if it averaged. Errors: UsageError if virtual
  /// ranks differ in their passes, or the last pass was under no_sync().
  bool end_update();
  /// True if the update's last pass is done, so that end_update() should follow.
  [[nodiscard]] bool update_is_whole() const {
    return in_update_ && passes_ > 0 && !keeps() && micro_batch_.ends_leaf();
  }
  /// Forgets an update that was left.
  void abandon_update() noexcept;
  /// Watches the outputs of a forward. `sync`: later backward passes average gradients.
  void after_forward(std::span<const at::Tensor> outputs, bool sync);

  /// Errors: UsageError if there is a hook already, `hook` is empty, or a pass is running.
  void set_comm_hook(CommHook hook, std::string name);
  /// The same with a hook that sees the gradients of each virtual rank.
  void set_compressor(CommHook hook, std::string name);
  void set_uneven_inputs(UnevenInputs* uneven);
  /// Lets the update of a bucket's parameters follow its reduction. Errors: UsageError if this
  /// optimizer or these options do not allow it.
  void update_early(const std::shared_ptr<optim::OptimizerImpl>& optimizer);
  /// Ends early updates of the parameters that this optimizer also updates.
  void update_late(const optim::OptimizerImpl& optimizer) { early_.remove(optimizer); }
  void update_late() { early_.clear(); }
  /// Compares the options of this optimizer between ranks from now on.
  void watch(const std::shared_ptr<optim::OptimizerImpl>& optimizer) { checks_.watch(optimizer); }
  /// Takes part, with zeros, in the reductions of one pass of the other ranks.
  void shadow_backward();
  /// The same where other operations come between: its beginning, the next bucket, its end. This
  /// rank has the averages then, as the others have them.
  void begin_shadow();
  void shadow_bucket();
  void end_shadow();
  /// The pool of buckets that are cut; nullptr: they are whole.
  [[nodiscard]] const std::shared_ptr<sharded::MemoryPool>& pool() const { return buckets_.pool(); }
  /// True if a parameter that learns has a gradient.
  [[nodiscard]] bool has_gradients() const;
  /// Calls `tell` before each collective of a pass that averages.
  void tell_spares_by(std::function<void(PassNews::What)> tell) { tell_ = std::move(tell); }
  /// Tells ranks without input, before gradients are gathered, that the program has cleared them.
  void tell_if_cleared() const;
  /// A spare's part of such a pass: it brings nothing to a bucket, and has the averages at the end.
  void follow_cleared_gradients(bool to_zeros);
  void follow_bucket();
  void follow_end_of_pass();

  void fill(DdpStats& stats) const;
  /// Returns the times of the last averaged pass. Cost: none.
  [[nodiscard]] const CommunicationTimes& communication_times() const { return reduction_.times(); }

  /// Asks this pool, before a pass ends, whether all parameters were there.
  void ask(std::shared_ptr<sharded::MemoryPool> pool) { values_ = std::move(pool); }

  /// For PassToken only: ends or aborts the pass.
  void end_pass();
  void abort_pass() noexcept;

 private:
  enum class Stage {
    kIdle,
    kOpen,     // a backward() runs
    kStarted,  // … and has reached a parameter
  };

  Reducer(const ParameterTable& table,
          const SparseGradients& sparse,
          const comm::Group& group,
          const DdpOptions& options,
          const std::shared_ptr<const comm::LeafDeal>& deal,
          BucketSet buckets);
  void install_hooks();
  void check_can_hook() const;

  void open_pass();
  void start_pass();
  void on_gradient(size_t index);
  void on_gradient_of_pass(size_t index);
  void on_sparse_gradient();
  void accept_late(size_t index);
  void mark_ready(size_t index);
  void send(size_t bucket);
  void finish_pass();
  void finish_leaf();
  void take_aside();
  void give_back();
  [[nodiscard]] std::optional<PassNews::What> how_cleared() const;
  [[nodiscard]] bool keeps() const;
  [[nodiscard]] bool compares() const {
    return uneven_ == nullptr && passes_ == 0 && leaves_.leaves_of_all() > 1;
  }
  void look(size_t index);
  void tell(PassNews::What what) const;
  void follow(const std::function<void()>& what);
  void contribute_unused(size_t index);
  void check_unchanged_in_update() const;
  void reduce_used_map();
  void wait_for_buckets();
  void leave_pass() noexcept;
  void fail(const std::string& why) noexcept;

  const ParameterTable& table_;
  SparseGradients sparse_;
  comm::Group group_;
  BucketSet buckets_;
  LeafSums leaves_;
  BucketReduction reduction_;
  UnusedParameters unused_;
  EarlyUpdates early_{};
  BackwardPass pass_;
  PassChecks checks_;
  SetAside aside_;
  bool in_update_ = false;  // begin() was called
  MicroBatch micro_batch_{};
  size_t passes_ = 0;                 // averaged ones of this leaf
  std::optional<uint64_t> sample_{};  // of the parameters, when an update of several passes began
  UnevenInputs* uneven_ = nullptr;
  size_t shadowed_ = 0;  // buckets of this pass
  std::function<void(PassNews::What)> tell_{};
  std::optional<PassNews::What> cleared_{};  // what spares are to be told of the averages before
  std::vector<engine::GradHook> hooks_{};

  std::shared_ptr<sharded::MemoryPool> values_{};  // of the parameters, where they are parts
  bool sync_ = true;                               // the next pass averages
  Stage stage_ = Stage::kIdle;
  bool holds_averages_ = false;  // the gradients, since the last averaged pass
  std::optional<std::string> failure_{};
  std::chrono::steady_clock::time_point began_{};
  std::chrono::nanoseconds backward_{0};  // of the last averaged pass, without the final wait
};

}  // namespace argosy::parallel::ddp
