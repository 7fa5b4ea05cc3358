#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/group.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/grad_hook.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/coalesced_broadcast.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/divisions.h"
#include "argosy/parallel/ddp/finite_check.h"
#include "argosy/parallel/ddp/format_choice.h"
#include "argosy/parallel/ddp/join.h"
#include "argosy/parallel/ddp/leaf_buffers.h"
#include "argosy/parallel/ddp/leaf_follower.h"
#include "argosy/parallel/ddp/micro_batch.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/outputs.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/reducer.h"
#include "argosy/parallel/ddp/spares.h"
#include "argosy/parallel/ddp/sparse_gradients.h"
#include "argosy/parallel/ddp/stats.h"

namespace torch::nn {
class Module;
}

namespace argosy::parallel::ddp {

/// The part of DistributedDataParallel<M> that does not depend on M.
///
/// In a group of one with one virtual rank it only looks whether gradients are finite: no buckets,
/// no copies.
class Core final {
 public:
  /// Collective: verifies the model across ranks, then copies rank 0's parameters and buffers.
  Core(std::shared_ptr<torch::nn::Module> module,
       const comm::Group& group,
       const DdpOptions& options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  Core(Core&&) = delete;
  Core& operator=(Core&&) = delete;

  /// Decides the memory format if it is open. Collective if it is open and gradients will be
  /// averaged.
  void settle_format(const Forward& forward);
  /// Decides the memory format without a trial. Collective if it is open.
  void settle_format(engine::MemoryFormat format, std::string reason);

  /// Returns the device and dtype of each forward's mixed precision; nullopt without
  /// DdpOptions::autocast.
  [[nodiscard]] const std::optional<engine::AutocastOptions>& autocast() const { return autocast_; }

  /// Returns what happens to outputs; nullopt: nothing.
  [[nodiscard]] std::optional<OutputsIn> output_cast() const;
  /// Returns the type for floating-point inputs; nullopt: as they are.
  [[nodiscard]] std::optional<at::ScalarType> input_type() const { return short_type(); }
  /// Returns the memory format for inputs.
  [[nodiscard]] engine::MemoryFormat input_format() const { return format_.format; }
  [[nodiscard]] bool format_is_open() const { return format_.open; }

  /// Errors: UsageError for a training forward that belongs to no virtual rank.
  void check_turn() const;
  /// Collective if gradients will be averaged and there are buffers, or buckets to rebuild.
  void before_forward();
  void after_forward(std::span<const at::Tensor> outputs);
  /// Errors: what stopped a gather of parameters, once.
  void check_memory() const;

  /// Tells `follower`, until unfollow_leaves(), of the virtual ranks' passes. Errors: UsageError if
  /// there is one already where virtual ranks are not the processes.
  void follow_leaves(LeafFollower& follower);
  void unfollow_leaves(const LeafFollower& follower) noexcept;
  [[nodiscard]] std::vector<at::Tensor> buffers() const;

  /// Lets backward passes average nothing from now on, so that each virtual rank's weights become
  /// its own, or average again. Steps are no longer divided. Collective, between two updates.
  /// Errors: UsageError in a join(), where ranks divide parameters, and where a process has no
  /// virtual rank.
  void set_apart(bool apart);
  /// Errors: as of set_apart().
  void check_can_be_apart() const;
  /// Errors: UsageError naming the first trainable parameter that `optimizer` lacks. `way`: what
  /// needs all of them, "diloco".
  void check_has_all_parameters(const optim::OptimizerImpl& optimizer,
                                const std::string& way) const;

  void enter_no_sync() { ++no_sync_depth_; }
  void leave_no_sync() { --no_sync_depth_; }

  /// Averages over another number of virtual ranks from the next update on; 0: one for each
  /// process. Collective. Errors: UsageError in a join(), and with a hook that needs a process for
  /// each.
  void deal_to(int64_t virtual_ranks);
  /// See DistributedDataParallel::begin().
  void begin(const MicroBatch& micro_batch);
  void end_update();
  /// Forgets an update that was left.
  void abandon_update() noexcept;
  /// True once this process has made a wrapper on a group of this name.
  [[nodiscard]] static bool any_made(const comm::Group& group);
  /// Calls `each` with the wrappers of this process on `group`, in the order of their construction.
  static void for_each(const comm::Group& group, const std::function<void(Core&)>& each);

  /// Errors: UsageError where ranks divide something and there is not one optimizer for it.
  void begin_join(const JoinOptions& options);
  void finish_join();
  void abandon_join() noexcept;

  /// Collective where parameters are parts: makes them whole, or parts again.
  void hold_parameters(bool whole);

  /// See DistributedDataParallel::divide_step().
  bool divide_step(const optim::Optimizer& optimizer, const DivideOptions& options);

  /// Compares the options of this optimizer, which updates the model, between ranks from now on.
  void watch(const optim::Optimizer& optimizer);

  void register_comm_hook(CommHook hook, std::string name);
  /// The same with a hook that remembers something from update to update: join() and
  /// scatter_gradients are errors then.
  void register_compressor(const Compressor& compressor);
  /// Nothing while ranks train apart: each has its own.
  void sync_buffers();
  /// Does so in any case.
  void broadcast_buffers();

  [[nodiscard]] DdpStats stats() const;
  /// `pass` is 0 if the wrapper does nothing.
  [[nodiscard]] CommunicationTimes communication_times() const;
  [[nodiscard]] const comm::Group& group() const { return group_; }
  [[nodiscard]] const DdpOptions& options() const { return options_; }
  [[nodiscard]] int64_t virtual_ranks() const { return deal_->leaves(); }
  [[nodiscard]] const std::shared_ptr<const comm::LeafDeal>& deal() const { return deal_; }

 private:
  [[nodiscard]] bool alone() const { return reducer_ == nullptr; }
  /// True if virtual ranks are not the processes, so that passes must say whose they are.
  [[nodiscard]] bool has_virtual_ranks() const { return deal_->leaves() != group_.size(); }
  [[nodiscard]] bool averages() const;
  void check_one_follower(size_t followers, const comm::LeafDeal& deal) const;
  void check_can_be_apart(const comm::LeafDeal& deal) const;
  void prepare();
  void initialize();
  void check_initializable() const;
  void use_hook_of_one();
  void check_sparse() const;
  [[nodiscard]] bool divides_parameters() const;
  [[nodiscard]] std::optional<at::ScalarType> short_type() const;
  void shard_parameters();
  void cast_frozen_parameters() const;
  [[nodiscard]] std::shared_ptr<sharded::MemoryPool> pool_of_gradients(
      const std::vector<int>& pieces = {}) const;
  bool divide_sharded(const optim::Optimizer& optimizer, const DivideOptions& options);
  [[nodiscard]] engine::NamedTensors parameters() const;
  void look_at_gradients();
  void decide_format(const std::function<std::string()>& objection_of_rank);
  struct AmongWrappers {
    int64_t number = 0;  // of this one among the group's
    int64_t all = 0;
  };
  [[nodiscard]] AmongWrappers among_wrappers() const;
  [[nodiscard]] bool first_passes_are_aligned() const;
  void listen_for_spares();
  void tell_spares(PassNews::What what);
  void tell_of_gather(uint32_t unit);
  void follow_until(PassNews::What end);
  void follow(const PassNews& news);
  void begin_extra_passes();
  void end_extra_passes();
  [[nodiscard]] bool divides_anything() const;
  [[nodiscard]] std::vector<std::shared_ptr<optim::OptimizerImpl>> sharded_optimizers() const;
  [[nodiscard]] std::shared_ptr<optim::OptimizerImpl> only_optimizer() const;
  void tell_in_join(PassNews::What what);
  void announce_all(JoinSession* session);
  void follow_in_join(JoinSession& session, const Announcement& what);
  void end_join(JoinSession& session);
  void broadcast_model(int root) const;
  void agree_on_open_format();
  void use_format(engine::MemoryFormat format, std::string reason);
  void rebuild(int root);
  void check_can_scatter(const optim::OptimizerImpl& optimizer, const DivideOptions& options) const;
  void unshare_parameters();
  void share_parameters();

  std::shared_ptr<torch::nn::Module> module_;
  comm::Group group_;
  DdpOptions options_;
  FormatChoice format_;
  ParameterTable table_;
  SparseGradients sparse_;
  std::optional<engine::AutocastOptions> autocast_;
  std::shared_ptr<const comm::LeafDeal> deal_;
  Spares spares_;
  CoalescedBroadcast buffers_;
  LeafBuffers leaf_buffers_;
  std::unique_ptr<Divisions> divisions_;           // null in a group of one, like the reducer
  std::shared_ptr<Reducer> reducer_;               // shared only with the running backward pass
  std::shared_ptr<ShardedBuckets> shards_{};       // of the parameters, with options.shard
  std::shared_ptr<sharded::MemoryPool> values_{};  // their memory
  std::vector<std::weak_ptr<optim::OptimizerImpl>> steppers_{};  // of the shards
  std::unique_ptr<JoinSession> join_;
  std::optional<std::pair<CommHook, std::string>> hook_of_one_;
  std::optional<Compressor> compressor_{};  // a hook that remembers something
  FiniteCheck finite_of_one_;
  std::vector<engine::GradHook> finite_hooks_{};
  int no_sync_depth_ = 0;
  int apart_ = 0;  // optimizers under which each rank's weights are its own
  std::vector<LeafFollower*> followers_{};
  std::optional<MicroBatch> micro_batch_;  // whose passes follow
  bool buffers_differ_ = false;            // an update was left
  bool shares_later_ = false;              // parameters, where the update ends
  // While the format is open: a backward of a forward in evaluation mode.
  std::shared_ptr<bool> passed_in_eval_ = std::make_shared<bool>(false);
  std::chrono::steady_clock::time_point forward_began_{};
  std::chrono::nanoseconds forward_time_{0};
};

}  // namespace argosy::parallel::ddp
