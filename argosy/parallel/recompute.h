#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include "argosy/parallel/ddp/outputs.h"

namespace torch::nn {
class Sequential;
}

namespace argosy::parallel {

/// What happens to the results of an operator. Names are PyTorch's; without a compiler, "must" and
/// "prefer" are the same.
enum class CheckpointPolicy { kMustSave, kPreferSave, kMustRecompute, kPreferRecompute };

/// Names and defaults are Paddle's.
struct RecomputeOptions {
  /// The second computation draws the random numbers of the first.
  bool preserve_rng_state = true;
  /// Says of each operator by its name ("aten::mm") whether its results are kept, so that they are
  /// not computed again; see must_save() and engine::ComputedTwice. Empty: nothing is kept. What
  /// views, writes in place or draws random numbers is always computed again. Ours; PyTorch's
  /// create_selective_checkpoint_contexts().
  std::function<CheckpointPolicy(const std::string& operator_name)> policy{};
  /// The products and sums at the end, which backward does not need, are not computed again unless
  /// somebody uses their results. On the CPU, and not around calls that are nested. The name is
  /// PyTorch's.
  bool early_stop = true;
};

/// Returns a policy that saves the results of these operators, and prefers to compute all others
/// again.
///
///     recompute({.policy = must_save({"aten::addmm", "aten::bmm"})}, block, x)
[[nodiscard]] std::function<CheckpointPolicy(const std::string&)> must_save(
    std::vector<std::string> operator_names);

namespace detail {

using Tensors = std::vector<at::Tensor>;
/// Runs `compute` without a graph and returns its tensors with one that computes it again.
[[nodiscard]] Tensors recomputed(std::function<Tensors(const Tensors&)> compute,
                                 const Tensors& arguments,
                                 const RecomputeOptions& options);

/// Puts other tensors in the places of those that OutputCollector finds.
struct Replace {
  const Tensors& others;
  std::size_t& next;

  template <typename T>
  void operator()(T& value) const {
    if constexpr (std::same_as<T, at::Tensor>) {
      if (value.defined()) {
        value = others.at(next++);
      }
    } else {
      ddp::for_each_held(value, *this);
    }
  }
};

template <typename Function, typename... Args>
decltype(auto) call(Function& function, Args&... args) {
  if constexpr (std::invocable<Function&, Args&...>) {
    return function(args...);
  } else {
    static_assert(
        requires { function->forward(args...); },
        "recompute() takes what can be called with these arguments: a function, a module's "
        "holder, or a std::shared_ptr of the module's own class");
    return function->forward(args...);
  }
}

}  // namespace detail

/// Calls `function`, keeps none of the results between its operators, and computes them again when
/// backward needs them: less memory for more time. The results and gradients are the same, to the
/// bit.
///
///     hidden = parallel::recompute(block, hidden);                     // a module
///     hidden = parallel::recompute([&](at::Tensor x) { return norm(block(x)); }, hidden);
///
/// `function` is a module, or anything that can be called; it is copied. Arguments may be of any
/// type and are copied too, results as well; tensors in them are found where
/// ddp::OutputCollector finds them. Gradients flow to the arguments and to the parameters that
/// `function` uses. Mixed precision is that of the first computation, random numbers too, of the
/// CPU's generator and those of the arguments' devices. Buffers that it writes, such as statistics
/// of norms, change once. Calls may be nested. Without gradients it is a plain call.
///
/// - A tensor that `function` uses more than once, and somebody else too, gets the parts of its
///   gradient added in another order, which may show in the last bits.
/// - An argument that requires no gradient is no obstacle, as it is for PyTorch's reentrant form.
/// - torch::autograd::grad(), DistributedDataParallel and find_unused_parameters see a usual graph.
/// - What else requires a gradient and was computed outside must be an argument.
/// - What reads or writes memory without an operator of libtorch (`data_ptr()`, `.data()`) is not
///   seen, and happens twice. Beside the last products it needs `early_stop = false`: the second
///   time it would find no memory in their results, and what it writes might be read too late.
/// - No other thread may draw from libtorch's generators during either computation.
/// - A second derivative is not there.
/// Errors: UsageError if `function` writes into an argument or a parameter, or uses what should be
///   an argument. backward() throws one if the second computation gave other shapes, drew other
///   random numbers, or used a parameter that the first did not.
/// Source: torch.utils.checkpoint; paddle.distributed.fleet.utils.recompute.
template <typename Function, typename... Args>
auto recompute(const RecomputeOptions& options, Function function, Args... args) {
  using Result = std::decay_t<decltype(detail::call(function, args...))>;
  if (!at::GradMode::is_enabled()) {
    return static_cast<Result>(detail::call(function, args...));
  }
  detail::Tensors inputs;
  auto arguments = std::make_tuple(std::move(args)...);
  ddp::OutputCollector{inputs}(arguments);
  std::size_t place = 0;
  detail::Replace{detail::Tensors(inputs.size(), at::empty({0})), place}(arguments);
  auto first = std::make_shared<std::unique_ptr<Result>>();
  const auto compute =
      [function, arguments, keep = std::weak_ptr(first)](const detail::Tensors& given) mutable {
        auto own = arguments;
        std::size_t place = 0;
        detail::Replace{given, place}(own);
        auto result = std::make_unique<Result>(
            std::apply([&](auto&... each) { return detail::call(function, each...); }, own));
        detail::Tensors outputs;
        ddp::OutputCollector{outputs}(*result);
        if (const auto wanted = keep.lock()) {
          *wanted = std::move(result);
        }
        return outputs;
      };
  const detail::Tensors outputs = detail::recomputed(compute, inputs, options);
  Result result = std::move(**first);
  place = 0;
  detail::Replace{outputs, place}(result);
  return result;
}

template <typename Function, typename... Args>
requires(!std::same_as<std::decay_t<Function>, RecomputeOptions>) auto recompute(
    Function&& function, Args&&... args) {
  return recompute(RecomputeOptions{},
                   std::decay_t<Function>(std::forward<Function>(function)),
                   std::decay_t<Args>(std::forward<Args>(args))...);
}

/// Names and defaults are Paddle's.
struct RecomputeSequentialOptions {
  int64_t segments = 1;  ///< parts of equal length; the last part is kept, and not recomputed
  bool preserve_rng_state = true;
};

/// Calls the modules one after the other, each segment but the last by recompute().
/// Errors: UsageError for segments that are not 1 to the number of modules.
/// Source: paddle.distributed.fleet.recompute_sequential; torch.utils.checkpoint_sequential.
[[nodiscard]] at::Tensor recompute_sequential(const RecomputeSequentialOptions& options,
                                              const torch::nn::Sequential& modules,
                                              const at::Tensor& input);

}  // namespace argosy::parallel
