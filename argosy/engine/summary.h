#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/engine/named.h"

namespace argosy::engine {

/// An operator that forward called, and the layer to which it belongs.
struct SummaryRow {
  std::string layer{};                  ///< "layer1.0.conv1"; empty: an operator without parameters
  std::string type{};                   ///< of the layer ("Conv2d"), else the operator's ("relu")
  std::vector<int64_t> output_shape{};  ///< of its first output
  int64_t parameters = 0;               ///< elements; 0 where a layer comes again
  int64_t multiply_adds = 0;            ///< of convolutions and matrix products
  int64_t output_bytes = 0;             ///< 0 where it writes in place
};

/// A model's layers, sizes and arithmetic, for one input.
struct Summary {
  std::vector<SummaryRow> rows{};    ///< in the order of forward
  std::vector<SummaryRow> unused{};  ///< layers with parameters that forward did not touch
  std::vector<int64_t> input_size{};
  int64_t parameters = 0;            ///< elements; tied ones count once
  int64_t trainable_parameters = 0;  ///< those with requires_grad
  int64_t multiply_adds = 0;
  int64_t input_bytes = 0;
  int64_t output_bytes = 0;     ///< of all rows: about twice that is kept for a step of training
  int64_t parameter_bytes = 0;  ///< parameters and buffers

  /// Returns a line per row, then the totals.
  [[nodiscard]] std::string to_string() const;
  /// Returns the same as a JSON object with these field names.
  [[nodiscard]] std::string to_json() const;
};

struct SummaryOptions {
  at::ScalarType dtype = at::kFloat;  ///< of the input; kLong if an embedding comes first
};

/// The output of a layer with parameters (or buffers).
struct LayerOutput {
  std::string layer{};  ///< "layer1.0.conv1"
  std::string type{};   ///< "Conv2d"
  at::Tensor output{};  ///< a copy, as it left the layer
};

/// The input and output of a layer with parameters (or buffers).
struct LayerCall {
  std::string layer{};  ///< "layer1.0.conv1"
  std::string type{};   ///< "Conv2d"
  at::Tensor input{};   ///< a copy; undefined if the layer reads only its parameters
  at::Tensor output{};  ///< a copy, as it left
};

namespace detail {
[[nodiscard]] std::vector<LayerCall> calls_of_forward(const torch::nn::Module& module,
                                                      const std::function<void()>& forward);
[[nodiscard]] std::vector<LayerOutput> outputs_of_forward(const torch::nn::Module& module,
                                                          const std::function<void()>& forward);
template <typename Model>
void call(Model& model, const at::Tensor& input) {
  if constexpr (requires {
                  model->forward(input);
                }) {  // a Sequential's operator() does not compile
    static_cast<void>(model->forward(input));
  } else if constexpr (requires { model.forward(input); }) {
    static_cast<void>(model.forward(input));
  } else {
    static_cast<void>(model(input));
  }
}
[[nodiscard]] Summary watch_forward(const torch::nn::Module& module,
                                    const std::vector<at::Tensor>& inputs,
                                    const std::function<void()>& forward);
[[nodiscard]] at::Tensor zeros_for(const torch::nn::Module& module,
                                   at::IntArrayRef input_size,
                                   const SummaryOptions& options);
}  // namespace detail

/// Summarizes a forward of `model` on zeros, like torchinfo, torchsummary and paddle.summary.
///
///     fmt::print("{}", engine::summary(vision::resnet50(), {1, 3, 224, 224}).to_string());
///
/// Takes anything that module_of() takes and that is called with one tensor. Runs one forward, in
/// evaluation mode and without gradients. Each module's mode is restored, and statistics do not
/// move.
///
/// Modules of libtorch have no hooks, so it watches the outermost operators that reach libtorch's
/// dispatcher on the calling thread. `lstm` is one row, and its products are counted. An operator
/// belongs to the layer whose parameters (or buffers) it reads. Therefore:
///   - layers without parameters (ReLU, pooling) show as operators, without their names; a layer
///     that only returns or views its input (Dropout in evaluation, Flatten, Identity) is left out;
///   - work outside the dispatcher or in other threads is not seen; such a layer is listed as
///     unused if it has parameters;
///   - of tied parameters, the first name counts;
///   - multiply-adds are those of convolutions, matrix products and attention, without biases,
///     norms and activations, as torchvision counts them (ResNet-50: 4.09 G).
/// Errors: UsageError for a negative size, or if called inside a forward; exceptions of forward
///   pass through. Cost: one forward.
template <typename Model>
[[nodiscard]] Summary summary(Model&& model,
                              at::IntArrayRef input_size,
                              const SummaryOptions& options = {}) {
  const at::Tensor input = detail::zeros_for(module_of(model), input_size, options);
  return detail::watch_forward(module_of(model), {input}, [&] { detail::call(model, input); });
}

/// The same for several inputs or for inputs of your own: `forward` calls the model with them.
///
///     summary(net, {tokens, mask}, [&] { net(tokens, mask); });
template <typename Model>
[[nodiscard]] Summary summary(Model&& model,
                              const std::vector<at::Tensor>& inputs,
                              const std::function<void()>& forward) {
  return detail::watch_forward(module_of(model), inputs, forward);
}

/// Returns each layer's output for `input`, in the order of forward, as hooks collect it in Python.
///
///     for (const auto& [layer, type, output] : engine::layer_outputs(net, images)) …
///
/// Runs one forward in evaluation mode and without gradients. It sees the same layers as summary();
/// a layer that is called twice appears twice. Errors: as summary(). Cost: one forward, and a copy
/// of each output.
template <typename Model>
[[nodiscard]] std::vector<LayerOutput> layer_outputs(Model&& model, const at::Tensor& input) {
  return detail::outputs_of_forward(module_of(model), [&] { detail::call(model, input); });
}

/// The same for any forward of the model, with each layer's input; `forward` calls the model.
///
///     for (const engine::LayerCall& call : engine::layer_calls(net, [&] { net(tokens, mask); })) …
///
/// Cost: one forward, copies of each input and output.
template <typename Model>
[[nodiscard]] std::vector<LayerCall> layer_calls(Model&& model,
                                                 const std::function<void()>& forward) {
  return detail::calls_of_forward(module_of(model), forward);
}

}  // namespace argosy::engine
