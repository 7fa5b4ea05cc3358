#include "argosy/parallel/recompute.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/container/sequential.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/computed_twice.h"
#include "argosy/engine/graph_node.h"
#include "argosy/engine/random_state.h"
#include "argosy/engine/used_tensors.h"
#include "argosy/parallel/ddp/graph.h"

namespace argosy::parallel::detail {
namespace {

constexpr const char* kRecompute = "parallel.recompute";

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::variable_list;
using torch::autograd::impl::gradient_edge;

/// What the first computation leaves for the second.
struct Computation {
  std::function<Tensors(const Tensors&)> compute;
  std::size_t arguments = 0;  // the first of the inputs
  /// Arguments, and the parameters that were used beside them.
  std::vector<torch::autograd::SavedVariable> inputs{};
  std::vector<engine::UsedTensors::Written> written{};
  std::vector<std::string> shapes{};
  std::optional<engine::StateDict> random{};        // before the first computation
  std::optional<engine::StateDict> random_after{};  // and after it
  engine::AutocastState autocast{};
  std::shared_ptr<engine::ComputedTwice> twice{};

  /// Once more, or for the first time.
  [[nodiscard]] Tensors run(const Tensors& given, bool is_first) const {
    Tensors outputs;
    const auto body = [&] { outputs = compute(given); };
    is_first ? twice->first(body) : twice->again(body);
    return outputs;
  }
};

std::shared_ptr<engine::ComputedTwice> computed_twice(const RecomputeOptions& options) {
  engine::ComputedTwiceOptions how{.early_stop = options.early_stop};
  if (options.policy != nullptr) {
    how.keeps = [policy = options.policy](const std::string& name) {
      const CheckpointPolicy wanted = policy(name);
      return wanted == CheckpointPolicy::kMustSave || wanted == CheckpointPolicy::kPreferSave;
    };
  }
  return std::make_shared<engine::ComputedTwice>(std::move(how));
}

/// Runs `restore` at its end. It is for destructors: what fails there is told and goes no further.
template <typename Restore>
void restored(const char* what, const Restore& restore) noexcept {
  try {
    restore();
  } catch (const std::exception& error) {
    log::error("[{}] {} did not get back what they were: {}", kRecompute, what, error.what());
  }
}

/// While it lives, generators draw what they drew at another time.
class RandomAgain final {
 public:
  RandomAgain(const std::optional<engine::StateDict>& then,
              const std::vector<at::Device>& devices) {
    if (then.has_value()) {
      now_ = engine::random_state(devices);
      engine::put_back_random_state(*then);
    }
  }
  ~RandomAgain() {
    restored("generators", [&] {
      if (now_.has_value()) {
        engine::put_back_random_state(*now_);
      }
    });
  }
  RandomAgain(const RandomAgain&) = delete;
  RandomAgain& operator=(const RandomAgain&) = delete;
  RandomAgain(RandomAgain&&) = delete;
  RandomAgain& operator=(RandomAgain&&) = delete;

 private:
  std::optional<engine::StateDict> now_;
};

/// While it lives, buffers begin with what they were before the first computation. Then they are
/// again what they have become. Without new versions, for graphs may have saved them.
class BuffersAgain final {
 public:
  explicit BuffersAgain(const std::vector<engine::UsedTensors::Written>& written) {
    for (const auto& [tensor, before] : written) {
      now_.emplace_back(tensor, tensor.detach().clone());
      tensor.data().copy_(before);
    }
  }
  ~BuffersAgain() {
    const at::NoGradGuard no_grad;
    for (const auto& [tensor, value] : now_) {
      restored("buffers", [&t = tensor, &v = value] { t.data().copy_(v); });
    }
  }
  BuffersAgain(const BuffersAgain&) = delete;
  BuffersAgain& operator=(const BuffersAgain&) = delete;
  BuffersAgain(BuffersAgain&&) = delete;
  BuffersAgain& operator=(BuffersAgain&&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> now_;
};

bool are_equal(const engine::StateDict& a, const engine::StateDict& b) {
  return std::ranges::all_of(a, [&](const auto& each) {
    const at::Tensor* const other = b.find(each.first);
    return other != nullptr && each.second.equal(*other);
  });
}

std::vector<at::Device> devices_of(const Tensors& tensors) {
  std::vector<at::Device> devices;
  for (const at::Tensor& tensor : tensors) {
    devices.push_back(tensor.device());
  }
  return devices;
}

std::vector<int64_t> versions_of(const Tensors& tensors) {
  std::vector<int64_t> versions;
  for (const at::Tensor& tensor : tensors) {
    versions.push_back(tensor.is_inference() ? 0 : tensor._version());
  }
  return versions;
}

std::vector<std::string> shapes_of(const Tensors& tensors) {
  std::vector<std::string> shapes;
  for (const at::Tensor& tensor : tensors) {
    shapes.push_back(text::shape_and_type(tensor));
  }
  return shapes;
}

/// Errors: UsageError if the graph between outputs and `known` has another leaf: its gradient would
/// be lost.
void check_leaves(const Tensors& outputs, const variable_list& known) {
  ddp::visit_nodes(outputs, known, [](const torch::autograd::Node& node) {
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(&node)) {
      throw UsageError(
          kRecompute,
          fmt::format("a parameter {} was used that the first computation did not use, or not by "
                      "an operator of libtorch, or that the function makes itself: pass it as an "
                      "argument of recompute()",
                      text::shape_and_type(leaf->variable)));
    }
  });
}

Tensors again(const Computation& computation, const Tensors& inputs) {
  Tensors outputs;
  {
    const RandomAgain random(computation.random, devices_of(inputs));
    const engine::AutocastStateGuard precision(computation.autocast);
    outputs = computation.run(inputs, /*is_first=*/false);
    ARGOSY_CHECK(!computation.random_after.has_value() ||
                     are_equal(*computation.random_after, engine::random_state(devices_of(inputs))),
                 kRecompute,
                 "other random numbers were drawn than at first. The function must draw the same; "
                 "and no other thread may draw from libtorch's generators, which are the "
                 "process's, while it runs. Set preserve_rng_state to false if the result does not "
                 "depend on them");
  }
  const std::vector<std::string> shapes = shapes_of(outputs);
  for (std::size_t i = 0; i < std::max(shapes.size(), computation.shapes.size()); ++i) {
    const auto word = [&](const std::vector<std::string>& of) {
      return i < of.size() ? of[i] : std::string("nothing");
    };
    ARGOSY_CHECK(word(shapes) == word(computation.shapes),
                 kRecompute,
                 "output {} was {} at first, and is {} when it is computed again. The function "
                 "must compute the same: does it depend on what has changed since?",
                 i,
                 word(computation.shapes),
                 word(shapes));
  }
  return outputs;
}

/// The gradients at the edges `to`. What somebody holds of the second computation is there then.
variable_list through_graph(const edge_list& from,
                            const variable_list& towards,
                            const edge_list& to,
                            engine::ComputedTwice& twice) {
  try {
    variable_list found =
        torch::autograd::Engine::get_default_engine().execute(from,
                                                              towards,
                                                              /*keep_graph=*/false,
                                                              /*create_graph=*/false,
                                                              /*accumulate_grad=*/false,
                                                              to);
    twice.finish();
    return found;
  } catch (...) {
    twice.finish();  // what a late result met comes first
    throw;
  }
}

/// Returns a gradient for each input.
Tensors gradients(const Computation& computation, const Tensors& grads) {
  ARGOSY_CHECK(!at::GradMode::is_enabled(),
               kRecompute,
               "a second derivative through recompute() is not there. Leave recompute() out, or "
               "create_graph");
  const at::AutoGradMode with_graph(true);
  Tensors results(computation.inputs.size());
  Tensors arguments;
  variable_list wanted;
  edge_list to;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < results.size(); ++i) {
    at::Tensor tensor = computation.inputs[i].unpack();
    if (i < computation.arguments) {
      tensor = tensor.detach().requires_grad_(tensor.requires_grad());
      arguments.push_back(tensor);
    }
    // Views of parameters, which were made without a graph, have no edge.
    const Edge edge = tensor.requires_grad() ? gradient_edge(tensor) : Edge();
    if (edge.is_valid()) {
      wanted.push_back(tensor);
      to.push_back(edge);
      places.push_back(i);
    }
  }
  const BuffersAgain buffers(computation.written);  // until the graph has read them
  edge_list from;
  variable_list towards;
  {  // nobody holds the outputs any more: what they are computed from can go
    const Tensors outputs = again(computation, arguments);
    check_leaves(outputs, wanted);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].requires_grad() && grads[i].defined()) {
        from.push_back(gradient_edge(outputs[i]));
        towards.push_back(grads[i]);
      }
    }
  }
  if (from.empty()) {
    return results;
  }
  const variable_list found = through_graph(from, towards, to, *computation.twice);
  for (std::size_t k = 0; k < places.size(); ++k) {
    results[places[k]] = found[k];
  }
  return results;
}

}  // namespace

Tensors recomputed(std::function<Tensors(const Tensors&)> compute,
                   const Tensors& arguments,
                   const RecomputeOptions& options) {
  auto computation = std::make_shared<Computation>(Computation{.compute = std::move(compute),
                                                               .arguments = arguments.size(),
                                                               .twice = computed_twice(options)});
  if (options.preserve_rng_state) {
    computation->random = engine::random_state(devices_of(arguments));
  }
  const std::vector<int64_t> versions = versions_of(arguments);
  Tensors given;  // so what requires a gradient was not given
  for (const at::Tensor& argument : arguments) {
    given.push_back(argument.detach());
  }
  Tensors outputs;
  engine::UsedTensors used = engine::used_tensors(
      [&] {
        const engine::AutocastUncached uncached;  // a cast without a graph must not serve others
        outputs = computation->run(given, /*is_first=*/true);
      },
      kRecompute);
  if (options.preserve_rng_state) {
    computation->random_after = engine::random_state(devices_of(arguments));
  }
  const std::vector<int64_t> after = versions_of(arguments);
  for (std::size_t i = 0; i < after.size(); ++i) {
    ARGOSY_CHECK(after[i] == versions[i],
                 kRecompute,
                 "the function writes into tensor {} of its arguments, {}, so that it cannot be "
                 "computed again. Let it write into a clone(), or use no operator in place",
                 i,
                 text::shape_and_type(arguments[i]));
  }
  computation->shapes = shapes_of(outputs);
  computation->written = std::move(used.written);
  Tensors inputs = arguments;
  for (const at::Tensor& tensor : used.with_gradient) {
    // Its graph would be gone through twice: by the second computation, and by who asked for it.
    ARGOSY_CHECK(
        tensor.is_leaf(),
        kRecompute,
        "the function uses a tensor that was computed outside and requires a gradient, {}: "
        "pass it as an argument of recompute()",
        text::shape_and_type(tensor));
    inputs.push_back(tensor);
  }
  for (const at::Tensor& input : inputs) {
    computation->inputs.emplace_back(input, /*is_output=*/false);
  }
  return engine::with_node(
      {.backward = [computation](const Tensors& grads) { return gradients(*computation, grads); },
       .release =
           [computation] {
             for (torch::autograd::SavedVariable& input : computation->inputs) {
               input.reset_data();
             }
             computation->twice = nullptr;
           }},
      inputs,
      outputs);
}

}  // namespace argosy::parallel::detail

namespace argosy::parallel {

std::function<CheckpointPolicy(const std::string&)> must_save(
    std::vector<std::string> operator_names) {
  return [names = std::move(operator_names)](const std::string& name) {
    return std::ranges::find(names, name) != names.end() ? CheckpointPolicy::kMustSave
                                                         : CheckpointPolicy::kPreferRecompute;
  };
}

at::Tensor recompute_sequential(const RecomputeSequentialOptions& options,
                                const torch::nn::Sequential& modules,
                                const at::Tensor& input) {
  const auto count = static_cast<int64_t>(modules->size());
  ARGOSY_CHECK(options.segments >= 1 && options.segments <= count,
               detail::kRecompute,
               "segments: expected 1 to the number of modules ({}), got {}",
               count,
               options.segments);
  at::Tensor x = input;
  const int64_t length = count / options.segments;
  for (int64_t segment = 0; segment < options.segments; ++segment) {
    const bool last = segment + 1 == options.segments;
    const int64_t end = last ? count : (segment + 1) * length;
    std::vector<torch::nn::AnyModule> part(modules->begin() + segment * length,
                                           modules->begin() + end);
    auto run = [part](at::Tensor y) mutable {
      for (torch::nn::AnyModule& module : part) {
        y = module.forward(y);
      }
      return y;
    };
    x = last
            ? run(x)
            : recompute(RecomputeOptions{.preserve_rng_state = options.preserve_rng_state}, run, x);
  }
  return x;
}

}  // namespace argosy::parallel
