#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/error.h"
#include "argosy/comm/group.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/core.h"
#include "argosy/parallel/ddp/inputs.h"
#include "argosy/parallel/ddp/join.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/outputs.h"
#include "argosy/parallel/ddp/stats.h"

namespace argosy::parallel {

/// While it lives, forward and backward passes of its wrapper gather gradients on this rank only.
/// Movable, nestable; see DistributedDataParallel::no_sync().
class [[nodiscard]] NoSync final {
 public:
  explicit NoSync(std::shared_ptr<ddp::Core> core) : core_(std::move(core)) {
    core_->enter_no_sync();
  }
  NoSync(NoSync&&) noexcept = default;
  NoSync& operator=(NoSync&&) = delete;
  NoSync(const NoSync&) = delete;
  NoSync& operator=(const NoSync&) = delete;
  ~NoSync() {
    if (core_ != nullptr) {
      core_->leave_no_sync();
    }
  }

 private:
  std::shared_ptr<ddp::Core> core_;
};

/// Trains one model on all ranks of a group, each with its own batches: when backward() returns,
/// the gradients are the averages over the ranks, the same bits on each.
///
///     comm::Group world = comm::init();
///     parallel::DistributedDataParallel model(vision::LeNet(), world);
///     auto loss = torch::nn::functional::cross_entropy(model(images), labels);
///     loss.backward();               // reductions run beside it
///     optimizer.step();
///
/// M: a module holder (TORCH_MODULE), a shared_ptr to a Module, an AnyModule, a Sequential. A value
/// handle: copies refer to the same wrapper, and all share the module.
///
/// Collective: construction (verifies names, shapes, dtypes and options across ranks, then copies
/// rank 0's parameters and buffers), forward in training mode, backward. All ranks run them in the
/// same order. Forwards without gradients (evaluation) do not communicate.
/// Which backward() averages: each one that reaches a parameter, unless the last forward was under
/// no_sync(). Several passes before a step add up, as in libtorch. torch::autograd::grad() leaves
/// gradients alone and so averages nothing.
/// Gradients: after the first averaged pass grad() of each parameter is a view into a bucket;
/// setting it to zero, undefined or another tensor is fine. Wrap the model after everything that
/// changes its parameters (dtype, channels_last, freezing); later changes are found at the next
/// forward. Group of one: nothing happens, to the bit what libtorch does alone. Not thread-safe:
/// one thread at a time. Errors: UsageError at construction, naming rank and parameter, when models
/// differ; from backward(): UsageError naming parameters without a gradient, CommError or
/// TimeoutError naming the ranks that failed. After that every forward fails: wrap the module again
/// on all ranks. Source: PyTorch's DistributedDataParallel; docs/design/ddp.md says what differs.
template <typename M>
class DistributedDataParallel final {
 public:
  DistributedDataParallel(M module, const comm::Group& group, const DdpOptions& options = {})
      : module_(std::move(module)), core_(std::make_shared<ddp::Core>(pointer(), group, options)) {}

  /// The module's own forward. Its outputs may be tensors, tuples, vectors, optionals or maps of
  /// such; see ddp::OutputCollector for types of one's own.
  template <typename... Args>
  auto operator()(Args&&... args) {
    return around(
        [this](auto&&... inputs) {
          return this->forward_of_module(static_cast<decltype(inputs)>(inputs)...);
        },
        std::forward<Args>(args)...);
  }
  /// For AnyModule and Sequential, whose forward must be told its result:
  /// forward<std::tuple<…>>(x).
  template <typename Result, typename... Args>
  Result forward(Args&&... args) {
    return around(
        [this](auto&&... inputs) -> Result {
          if constexpr (kIsPointer) {
            return module_->template forward<Result>(static_cast<decltype(inputs)>(inputs)...);
          } else {
            return module_.template forward<Result>(static_cast<decltype(inputs)>(inputs)...);
          }
        },
        std::forward<Args>(args)...);
  }

  [[nodiscard]] const M& module() const { return module_; }
  [[nodiscard]] M& module() { return module_; }  ///< model.module()->train(), ->eval()
  [[nodiscard]] auto* operator->() const { return pointer().get(); }

  [[nodiscard]] auto named_parameters() const { return pointer()->named_parameters(); }
  [[nodiscard]] auto parameters() const { return pointer()->parameters(); }
  [[nodiscard]] auto named_buffers() const { return pointer()->named_buffers(); }
  void train(bool on = true) { pointer()->train(on); }
  void eval() { pointer()->eval(); }
  [[nodiscard]] const comm::Group& group() const { return core_->group(); }

  /// Passes inside add up on this rank; the first backward after a forward outside averages the
  /// sum. Must cover forward *and* backward, as in PyTorch. Communicates nothing.
  ///
  ///     for (…) { auto local = model.no_sync(); loss(model(x)).backward(); }
  NoSync no_sync() { return NoSync(core_); }
  /// See Join.
  Join join(const JoinOptions& options = {}) { return Join(core_, options); }

  /// Collective. From now on the ranks of the host divide each step of `optimizer`, which updates
  /// this model's parameters: each updates its share of all elements and writes the new values into
  /// the others' parameters too. Its state lies once in memory that all see. Same bits. Whether it
  /// is so: not in a group of one, over several hosts or without DdpOptions::shared_memory.
  ///
  /// Then step() is collective, and all ranks must make the same one: same learning rates, same
  /// gradients, which is checked. state_dict() is not collective: it is whole on every rank; nor is
  /// load_state_dict(). In a join() steps are not divided, nor after it. Options: hazards, off
  /// unless asked for; the bits are the same with all of them.
  /// Errors: those of a broken group from step(): the parameters may then be partly old and partly
  /// new.
  bool divide_step(const optim::Optimizer& optimizer, const DivideOptions& options = {}) {
    return core_->divide_step(optimizer, options);
  }

  /// Replaces how buckets travel; once, on all ranks alike, outside of backward. Not called in a
  /// group of one. `name` is for stats().
  void register_comm_hook(CommHook hook, std::string name = "custom") {
    core_->register_comm_hook(std::move(hook), std::move(name));
  }
  /// Collective. Copies rank 0's buffers now: before an evaluation shared between the ranks, whose
  /// running statistics have parted since the last forward.
  void sync_buffers() { core_->sync_buffers(); }

  /// In which order weights and inputs lie; kAuto: not decided yet.
  [[nodiscard]] engine::MemoryFormat memory_format() const {
    return core_->format_is_open() ? engine::MemoryFormat::kAuto : core_->input_format();
  }
  /// Decides what DdpOptions::memory_format = kAuto has left open, as a run that this one goes on
  /// from did: the other order rounds differently. Nothing where it is decided. Collective.
  void decide_memory_format(engine::MemoryFormat format) {
    core_->settle_format(format, "as in the run before");
  }

  [[nodiscard]] DdpStats stats() const { return core_->stats(); }
  /// When the last averaged pass communicated. Cost: none, where stats() copies names.
  [[nodiscard]] CommunicationTimes communication_times() const {
    return core_->communication_times();
  }
  /// For the library's own rooms.
  [[nodiscard]] const std::shared_ptr<ddp::Core>& core() const { return core_; }

 private:
  static constexpr bool kIsPointer = requires(const M& m) {
    m.operator->()->named_parameters();
    m.get()->named_parameters();
  };

  // shared_ptr to what M holds: Impl of a holder, Module of an AnyModule.
  auto pointer() const {
    if constexpr (requires { module_.ptr(); }) {
      using Pointer = std::remove_cvref_t<decltype(module_.ptr())>;
      return module_.is_empty() ? Pointer() : Pointer(module_.ptr());
    } else {
      static_assert(
          requires { module_->named_parameters(); },
          "DistributedDataParallel takes a module holder, a shared_ptr to a "
          "torch::nn::Module or a torch::nn::AnyModule");
      return module_;
    }
  }

  template <typename... Args>
  auto forward_of_module(Args&&... args) {
    if constexpr (kIsPointer) {
      return module_->forward(std::forward<Args>(args)...);
    } else {
      return module_.forward(std::forward<Args>(args)...);  // AnyModule
    }
  }

  template <typename Forward, typename... Args>
  auto around(const Forward& forward, Args&&... args) {
    if (core_->format_is_open()) {
      core_->settle_format([&](engine::MemoryFormat format) -> std::vector<at::Tensor> {
        if constexpr ((ddp::kRepeatable<Args> && ...)) {
          bool wrote = false;
          auto outputs = tensors_in(ddp::with_copies_in<Args...>(format, wrote, forward, args...));
          if (wrote) {
            throw UsageError("parallel.ddp", "forward writes into an image that it is given");
          }
          return outputs;
        } else {
          throw UsageError("parallel.ddp", "an argument of forward cannot be copied");
        }
      });
    }
    core_->before_forward();
    auto output = run(forward, std::forward<Args>(args)...);
    core_->after_forward(tensors_in(output));
    return output;
  }

  template <typename Forward, typename... Args>
  auto run(const Forward& forward, Args&&... args) {
    const engine::MemoryFormat format = core_->input_format();
    return format == engine::MemoryFormat::kAsIs
               ? forward(std::forward<Args>(args)...)
               : ddp::with_inputs_in(format, forward, std::forward<Args>(args)...);
  }

  template <typename Output>
  static std::vector<at::Tensor> tensors_in(const Output& output) {
    std::vector<at::Tensor> tensors;
    ddp::OutputCollector{tensors}(output);
    return tensors;
  }

  M module_;
  std::shared_ptr<ddp::Core> core_;
};

}  // namespace argosy::parallel
