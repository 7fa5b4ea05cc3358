#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/work.h"
#include "argosy/engine/grad_hook.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/stats.h"

namespace argosy::parallel::ddp {

class PassToken;

/// The part of a join session that the reducer needs: see join.h.
class UnevenInputs {
 public:
  virtual ~UnevenInputs() = default;
  /// Tells the ranks that have finished that a reduction follows.
  virtual void announce_backward() = 0;
  /// After the announcement: by how many ranks the sums of this pass are divided.
  [[nodiscard]] virtual int divisor() = 0;
};

/// Averages the gradients of a ParameterTable over a group while backward runs.
///
/// A *pass* begins with the first sign of a backward() (a hook on an output, else the first
/// gradient) and ends when autograd's engine has nothing left to do, inside the same backward().
/// During it each gradient is brought into its bucket; a complete bucket is sent as soon as all
/// before it have been. See docs/design/ddp.md.
///
/// Not thread-safe: forward and backward of one wrapper come from one thread at a time. The hooks
/// of CPU parameters run in the thread that called backward(), those of parameters on another
/// device in autograd's one thread for that device, while the caller waits: ranks that are threads
/// of one process need a device each. Communication hooks are called without any lock held.
class Reducer final : public std::enable_shared_from_this<Reducer> {
 public:
  /// The table must outlive the reducer.
  static std::shared_ptr<Reducer> create(const ParameterTable& table,
                                         const comm::Group& group,
                                         const DdpOptions& options);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  Reducer(Reducer&&) = delete;
  Reducer& operator=(Reducer&&) = delete;

  /// Errors: UsageError when an earlier backward pass failed, or one is under way.
  void check_ready_for_forward() const;
  /// Whether the buckets await their one rebuild; equal on all ranks.
  [[nodiscard]] bool rebuild_due() const;
  /// Collective. New buckets in the order in which the gradients of `root` arrived.
  void rebuild(int root);
  /// The parameters have other strides than before, in the same memory.
  void follow_layout();
  /// Watches the outputs of a forward; `sync`: backward passes from now on average gradients.
  void after_forward(std::span<const at::Tensor> outputs, bool sync);

  /// Errors: UsageError when there is one already, it is empty, or a pass is under way.
  void set_comm_hook(CommHook hook, std::string name);
  void set_uneven_inputs(UnevenInputs* uneven);
  /// The update of a bucket's parameters follows its reduction. Errors: UsageError when this
  /// optimizer or these options do not allow it.
  void update_early(const std::shared_ptr<optim::OptimizerImpl>& optimizer);
  /// No more of the parameters that are also this optimizer's.
  void update_late(const optim::OptimizerImpl& optimizer);
  void update_late() { early_.clear(); }
  /// Takes part in the reductions of one pass of the other ranks, with zeros.
  void shadow_backward();

  void fill(DdpStats& stats) const;
  /// Of the last averaged pass. Cost: none.
  [[nodiscard]] CommunicationTimes communication_times() const {
    return {.pass = stats_.reduced_passes,
            .begun = first_sent_,
            .waited = wait_began_,
            .ended = wait_ended_};
  }

  /// For PassToken only: how the pass ended.
  void end_pass();
  void abort_pass() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Place {  // where a parameter's gradient lives
    size_t bucket = 0;
    size_t slot = 0;
  };
  struct Unused {
    size_t index = 0;
    at::Tensor kept{};  // its gradient from before, where that lay in the bucket
    bool frozen = false;
  };

  Reducer(const ParameterTable& table, const comm::Group& group, const DdpOptions& options);
  void install_hooks();
  void use_buckets(const BucketPlan& plan);
  [[nodiscard]] at::Tensor& view_of(size_t index);

  void open_pass();
  void start_pass();
  void count_pass();
  [[nodiscard]] comm::ReduceOptions reduction(comm::ReduceOp op) const;
  void on_gradient(size_t index);
  void on_gradient_of_pass(size_t index);
  void accept_late(size_t index);
  bool bring_into_bucket(size_t index);
  void contribute_unused(size_t index);
  void contribute_frozen(size_t index);
  [[nodiscard]] bool frozen(size_t index) const;
  void mark_ready(size_t index);
  void send(size_t index);
  void send_used_map();
  void update(size_t index);
  void check_steps_complete() const;

  void finish_pass();
  [[nodiscard]] std::vector<size_t> not_ready() const;
  void wait_for_buckets();
  void settle_unused();
  void reset_pass() noexcept;
  void fail(const std::string& why) noexcept;

  const ParameterTable& table_;
  comm::Group group_;
  DdpOptions options_;
  CommHook hook_;
  std::string hook_name_ = "average";
  UnevenInputs* uneven_ = nullptr;
  std::vector<engine::GradHook> hooks_;

  BucketPlan plan_;
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;
  transport::TrainingPlace place_{};  // of the pass that runs; each rank counts by itself
  uint64_t sample_at_pass_ = 0;       // of the parameters, when it began: an update changes it
  bool rebuilt_ = false;
  std::vector<int64_t> arrival_;  // of the first reduced pass

  bool sync_ = true;      // the next pass averages
  bool open_ = false;     // a backward() runs
  bool started_ = false;  // … and has reached a parameter
  std::optional<std::string> failure_;
  std::vector<uint8_t> ready_;
  std::vector<size_t> missing_;  // per bucket: gradients that are not ready
  size_t ready_count_ = 0;
  size_t next_ = 0;  // the bucket to send next
  std::vector<BucketWork> sent_;
  std::vector<std::weak_ptr<optim::OptimizerImpl>> early_;  // whose updates run in backward
  /// Closed when a pass has failed: the program may do what it likes with its optimizer then.
  struct Gate {
    std::mutex mutex{};
    bool open = true;
  };
  const std::shared_ptr<Gate> updates_allowed_ = std::make_shared<Gate>();
  std::vector<comm::Work> updates_;

  // find_unused_parameters only
  std::vector<uint8_t> used_;       // since the last reduction, passes under no_sync included
  std::vector<uint8_t> reachable_;  // from the outputs of forwards whose backward has not run
  int64_t open_forwards_ = 0;       // those that will synchronise
  std::vector<Unused> unused_;
  at::Tensor used_map_;
  comm::Work used_map_work_;

  static constexpr const char* kWhere = "parallel.ddp";

  DdpStats stats_;
  Clock::time_point pass_began_{};
  Clock::time_point first_sent_{};
  Clock::time_point wait_began_{};
  Clock::time_point wait_ended_{};
};

}  // namespace argosy::parallel::ddp
