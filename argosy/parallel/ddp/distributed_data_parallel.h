#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/base/error.h"
#include "argosy/comm/group.h"
#include "argosy/engine/autocast.h"
#include "argosy/optim/optimizer.h"
#include "argosy/parallel/ddp/comm_hook.h"
#include "argosy/parallel/ddp/core.h"
#include "argosy/parallel/ddp/inputs.h"
#include "argosy/parallel/ddp/join.h"
#include "argosy/parallel/ddp/micro_batch.h"
#include "argosy/parallel/ddp/options.h"
#include "argosy/parallel/ddp/outputs.h"
#include "argosy/parallel/ddp/stats.h"

namespace argosy::parallel {

/// A guard: while it exists, the wrapper's backward passes add up gradients on this rank and
/// average nothing. Guards can be moved and nested; see DistributedDataParallel::no_sync().
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

/// A guard: while it exists, each rank has all parameters of a model whose parameters are divided.
/// What all ranks write into them alike is kept. See DistributedDataParallel::whole_parameters().
class [[nodiscard]] WholeParameters final {
 public:
  explicit WholeParameters(std::shared_ptr<ddp::Core> core) : core_(std::move(core)) {
    core_->hold_parameters(true);
  }
  ~WholeParameters() { core_->hold_parameters(false); }
  WholeParameters(const WholeParameters&) = delete;
  WholeParameters& operator=(const WholeParameters&) = delete;
  WholeParameters(WholeParameters&&) = delete;
  WholeParameters& operator=(WholeParameters&&) = delete;

 private:
  std::shared_ptr<ddp::Core> core_;
};

/// Trains one model on all ranks of a group. Each rank has its own batches; when backward()
/// returns, every rank holds the average of all ranks' gradients, with the same bits.
///
///     comm::Group world = comm::init();
///     parallel::DistributedDataParallel model(vision::LeNet(), world);
///     auto loss = torch::nn::functional::cross_entropy(model(images), labels);
///     loss.backward();               // reductions run beside it
///     optimizer.step();
///
/// M is a module holder (TORCH_MODULE), a shared_ptr to a Module, an AnyModule or a Sequential. The
/// wrapper is a handle: copies refer to the same wrapper and share the module.
///
/// - Collective calls: the constructor, forward in training mode, and backward. All ranks make them
///   in the same order. The constructor compares names, shapes, dtypes and options between the
///   ranks, then copies rank 0's parameters and buffers to all. A forward without gradients, as in
///   an evaluation, communicates nothing.
/// - A backward() averages if it reaches a parameter and the last forward was outside of no_sync().
///   Several passes before a step add up, as in libtorch. torch::autograd::grad() writes no
///   gradients and therefore averages nothing.
/// - After the first averaged pass, the grad() of each parameter is a view into a bucket. You may
///   set it to zero, to undefined or to another tensor.
/// - Wrap the model after you have changed its dtype or memory format. Parameters may be frozen and
///   unfrozen between passes if all ranks do the same. Other changes fail at the next forward.
/// - In a group of one rank with one virtual rank the wrapper does nothing: the results have
///   libtorch's bits.
/// - A wrapper belongs to one thread at a time.
///
/// Errors: the constructor throws a UsageError that names rank and parameter if the models differ.
/// backward() throws one if ranks have drifted apart (DdpOptions::check_drift), and a DataError for
/// a gradient that is not finite under NonfiniteGradient::kStop.
/// backward() throws a UsageError that names parameters without a gradient, or a CommError or
/// TimeoutError that names the ranks that failed; after that every forward fails until all ranks
/// wrap the module again.
/// Source: PyTorch's DistributedDataParallel; docs/design/ddp.md lists the differences.
template <typename M>
class DistributedDataParallel final {
 public:
  DistributedDataParallel(M module, const comm::Group& group, const DdpOptions& options = {})
      : module_(std::move(module)), core_(std::make_shared<ddp::Core>(pointer(), group, options)) {}

  /// Calls the module's own forward. Outputs may be tensors, or tuples, vectors, optionals and maps
  /// of tensors; ddp::OutputCollector says how to add types of your own.
  template <typename... Args>
  auto operator()(Args&&... args) {
    return around(
        [this](auto&&... inputs) {
          return this->forward_of_module(static_cast<decltype(inputs)>(inputs)...);
        },
        std::forward<Args>(args)...);
  }
  /// The same for AnyModule and Sequential, whose forward needs the type of the result:
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

  /// Runs the model of this rank alone: under the wrapper's autocast and in its memory format, but
  /// without any communication. For evaluations in which ranks have different numbers of batches.
  template <typename... Args>
  auto forward_alone(Args&&... args) {
    std::optional<engine::Autocast> autocast;
    begin(autocast);
    auto output = run(
        [this](auto&&... inputs) {
          return this->forward_of_module(static_cast<decltype(inputs)>(inputs)...);
        },
        std::forward<Args>(args)...);
    core_->check_memory();
    cast(output);
    return output;
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

  /// Returns a guard under which passes add up gradients on this rank without communication. The
  /// first pass outside of it averages the sum. The guard must cover forward *and* backward, as in
  /// PyTorch.
  ///
  ///     for (…) {
  ///       auto local = model.no_sync();
  ///       loss(model(x)).backward();
  ///     }
  NoSync no_sync() { return NoSync(core_); }
  /// Says to which micro-batch of which virtual rank the forward and backward passes that follow
  /// belong, until the next call. fleet::updates() and fit() call it. Gradients are averaged, over
  /// all virtual ranks, in the passes of the last micro-batch of the process's last virtual rank;
  /// until then no parameter has a grad() between two virtual ranks. Collective where an update
  /// begins: begin all wrappers before the first pass of any.
  ///
  ///     for (int64_t leaf = 0; leaf < 2; ++leaf) {                  // 4 virtual ranks, 2 processes
  ///       model.begin({.leaf = leaf, .leaves = 2});
  ///       loss(model(batch_of(2 * group.rank() + leaf))).backward();
  ///     }
  ///     model.end_update();
  ///     optimizer.step();
  void begin(const MicroBatch& micro_batch) { core_->begin(micro_batch); }
  /// Ends the micro-batches of an update, before optimizer.step(). Buffers are then those of
  /// virtual rank 0, on all processes. Collective.
  void end_update() { core_->end_update(); }
  /// Lets ranks have unequal numbers of batches; see Join.
  Join join(const JoinOptions& options = {}) { return Join(core_, options); }

  /// Collective. Divides each further step of `optimizer`, which updates this model's parameters,
  /// between the ranks of the host: each rank updates its share of the elements and writes the new
  /// values into the parameters of all. The optimizer's state exists once per host, in shared
  /// memory. The results have the same bits as undivided steps.
  /// Returns false, and divides nothing, for one rank, several hosts, or shared_memory = false.
  ///
  /// step() is collective then: all ranks step with the same learning rates and the same gradients,
  /// which is checked. state_dict() and load_state_dict() are not collective; the state is whole on
  /// every rank. Steps inside a join(), and after one, are not divided. `options` turns on two
  /// faster ways, each with a hazard.
  /// Errors: step() throws what a broken group throws; the parameters may then be partly updated.
  bool divide_step(const optim::Optimizer& optimizer, const DivideOptions& options = {}) {
    return core_->divide_step(optimizer, options);
  }

  /// Collective, where DdpOptions::shard divides the parameters: makes them whole while the guard
  /// lives, in the memory of the whole model, or in what the ranks of a host share. For reading
  /// weights without operators of libtorch, for ranks that read different ones, and for evaluations
  /// in which ranks have different numbers of batches. What all ranks write alike by operators, or
  /// under an engine::DirectUse, is kept.
  WholeParameters whole_parameters() { return WholeParameters(core_); }

  /// Replaces the reduction of buckets by `hook`. Call it once, on all ranks, outside of backward.
  /// A group of one rank never calls the hook. `name` appears in stats().
  void register_comm_hook(CommHook hook, std::string name = "custom") {
    core_->register_comm_hook(std::move(hook), std::move(name));
  }
  /// Collective. Copies rank 0's buffers to all ranks. Call it before the ranks share an
  /// evaluation: their running statistics differ since the last forward. While ranks train apart
  /// (localsgd, diloco) it does nothing: use_shared_weights(true) of the optimizer brings them.
  void sync_buffers() { core_->sync_buffers(); }

  /// Returns the memory format of weights and inputs; kAuto if it is not decided yet.
  [[nodiscard]] engine::MemoryFormat memory_format() const {
    return core_->format_is_open() ? engine::MemoryFormat::kAuto : core_->input_format();
  }
  /// Collective. Decides the format that DdpOptions::memory_format = kAuto has left open. A resumed
  /// run passes the earlier run's choice, because the other format rounds differently. Does nothing
  /// if the format is decided.
  void decide_memory_format(engine::MemoryFormat format) {
    core_->settle_format(format, "as in the run before");
  }

  [[nodiscard]] DdpStats stats() const { return core_->stats(); }
  /// Returns when the last averaged pass communicated. Cheaper than stats(), which copies names.
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
    std::optional<engine::Autocast> autocast;
    begin(autocast);
    core_->check_turn();
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
    cast(output);
    core_->after_forward(tensors_in(output));
    return output;
  }

  void begin(std::optional<engine::Autocast>& autocast) const {
    if (core_->autocast().has_value()) {
      autocast.emplace(*core_->autocast());
    }
  }

  template <typename Forward, typename... Args>
  auto run(const Forward& forward, Args&&... args) {
    const ddp::InputForm form{core_->input_format(), core_->input_type()};
    return form.changes_nothing() ? forward(std::forward<Args>(args)...)
                                  : ddp::with_inputs_in(form, forward, std::forward<Args>(args)...);
  }

  template <typename Output>
  void cast(Output& output) const {
    if (const auto cast = core_->output_cast()) {
      (*cast)(output);
    }
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
