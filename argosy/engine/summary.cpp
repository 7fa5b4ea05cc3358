#include "argosy/engine/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/operator_watch.h"

#include <nlohmann/json.hpp>

namespace argosy::engine {
namespace {

/// A module that holds tensors itself.
struct Layer {
  std::string name;
  std::string type;
  int64_t parameters = 0;
  bool seen = false;
};

/// "torch::nn::Conv2dImpl" is "Conv2d".
std::string type_name(const torch::nn::Module& module) {
  std::string name = module.name();
  name = name.substr(name.rfind(':') + 1);
  const std::string_view suffix = "Impl";
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  return name;
}

/// Which layer's parameters and buffers lie where in memory: parameters may be views of buckets,
/// and layers may read parts of them.
class Layers final {
 public:
  Layers(const torch::nn::Module& module, Summary& totals) : totals_(totals) {
    add("", module);
    for (const auto& item : module.named_modules("", /*include_self=*/false)) {
      add(item.key(), *item.value());
    }
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return a.begin < b.begin;
    });
  }

  [[nodiscard]] int64_t owner_of(const at::Tensor& tensor) const {
    if (!tensor.has_storage() || tensor.numel() == 0) {
      return -1;
    }
    const auto* place = static_cast<const char*>(tensor.data_ptr());
    auto after = std::upper_bound(
        ranges_.begin(), ranges_.end(), place, [](const char* p, const Range& range) {
          return p < range.begin;
        });
    const bool inside = after != ranges_.begin() && place < (--after)->end;
    return inside ? after->layer : -1;
  }

  std::vector<Layer> all;

 private:
  struct Range {
    const char* begin;
    const char* end;
    int64_t layer;
  };

  void add(const std::string& name, const torch::nn::Module& module) {
    Layer layer{name, type_name(module)};
    bool holds = false;
    for (const at::Tensor& p : module.parameters(/*recurse=*/false)) {
      if (claim(p)) {
        layer.parameters += p.numel();
        totals_.trainable_parameters += p.requires_grad() ? p.numel() : 0;
        holds = true;
      }
    }
    for (const at::Tensor& buffer : module.buffers(/*recurse=*/false)) {
      holds = claim(buffer) || holds;
    }
    if (holds) {
      totals_.parameters += layer.parameters;
      all.push_back(std::move(layer));
    }
  }

  /// For the layer that comes next; false for what another name had before.
  bool claim(const at::Tensor& tensor) {
    if (!tensor.defined() || !known_.insert(tensor.unsafeGetTensorImpl()).second) {
      return false;
    }
    totals_.parameter_bytes += static_cast<int64_t>(tensor.nbytes());
    if (tensor.has_storage() && tensor.numel() > 0) {
      const auto* begin = static_cast<const char*>(tensor.data_ptr());
      ranges_.push_back({begin, begin + tensor.nbytes(), static_cast<int64_t>(all.size())});
    }
    return true;
  }

  Summary& totals_;
  std::vector<Range> ranges_;
  std::unordered_set<const void*> known_;
};

/// Evaluation mode while it lives; then each module has its own mode again.
class Evaluating final {
 public:
  explicit Evaluating(torch::nn::Module& module)
      : module_(module), training_(module.is_training()) {
    for (const auto& child : module.modules(/*include_self=*/false)) {
      children_.emplace_back(child, child->is_training());
    }
    module.eval();
  }
  ~Evaluating() {
    module_.train(training_);
    for (const auto& [child, training] : children_) {  // from the outside in: train() goes deep
      if (child->is_training() != training) {
        child->train(training);
      }
    }
  }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  torch::nn::Module& module_;
  bool training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> children_;
};

nlohmann::ordered_json to_json_rows(const std::vector<SummaryRow>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const SummaryRow& row : rows) {
    list.push_back({{"layer", row.layer},
                    {"type", row.type},
                    {"output_shape", row.output_shape},
                    {"parameters", row.parameters},
                    {"multiply_adds", row.multiply_adds},
                    {"output_bytes", row.output_bytes}});
  }
  return list;
}

std::vector<LayerCall> calls_of(const torch::nn::Module& module,
                                const std::function<void()>& forward,
                                const WatchOptions& options) {
  Summary unused;
  const Layers layers(module, unused);
  std::vector<LayerCall> result;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): modes are put back
  const Evaluating evaluating(const_cast<torch::nn::Module&>(module));
  const c10::NoGradGuard no_grad;
  for (SeenOperator& op :
       watch_operators([&](const at::Tensor& t) { return layers.owner_of(t); }, forward, options)) {
    if (op.owner >= 0) {
      const Layer& layer = layers.all[static_cast<size_t>(op.owner)];
      result.push_back({layer.name, layer.type, std::move(op.input), std::move(op.output)});
    }
  }
  return result;
}

}  // namespace

at::Tensor detail::zeros_for(const torch::nn::Module& module,
                             at::IntArrayRef input_size,
                             const SummaryOptions& options) {
  ARGOSY_CHECK(std::all_of(input_size.begin(), input_size.end(), [](int64_t n) { return n >= 0; }),
               "engine.summary",
               "input_size must not be negative, got {}",
               text::shape(input_size));
  const std::vector<at::Tensor> parameters = module.parameters();
  return at::zeros(input_size,
                   at::TensorOptions(options.dtype)
                       .device(parameters.empty() ? at::Device(at::kCPU) : parameters[0].device()));
}

std::vector<LayerCall> detail::calls_of_forward(const torch::nn::Module& module,
                                                const std::function<void()>& forward) {
  return calls_of(module, forward, {.outputs = true, .inputs = true});
}

std::vector<LayerOutput> detail::outputs_of_forward(const torch::nn::Module& module,
                                                    const std::function<void()>& forward) {
  std::vector<LayerOutput> result;
  for (LayerCall& call : calls_of(module, forward, {.outputs = true})) {
    result.push_back({std::move(call.layer), std::move(call.type), std::move(call.output)});
  }
  return result;
}

Summary detail::watch_forward(const torch::nn::Module& module,
                              const std::vector<at::Tensor>& inputs,
                              const std::function<void()>& forward) {
  Summary result;
  for (const at::Tensor& input : inputs) {
    result.input_bytes += static_cast<int64_t>(input.nbytes());
  }
  if (!inputs.empty()) {
    result.input_size = inputs[0].sizes().vec();
  }
  Layers layers(module, result);
  std::vector<SeenOperator> seen;
  {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): modes are put back
    const Evaluating evaluating(const_cast<torch::nn::Module&>(module));
    const c10::NoGradGuard no_grad;
    seen = watch_operators([&](const at::Tensor& t) { return layers.owner_of(t); }, forward);
  }
  for (SeenOperator& op : seen) {
    SummaryRow row{.type = std::move(op.name),
                   .output_shape = std::move(op.output_shape),
                   .multiply_adds = op.multiply_adds,
                   .output_bytes = op.output_bytes};
    if (op.owner >= 0) {
      Layer& layer = layers.all[static_cast<size_t>(op.owner)];
      row.layer = layer.name;
      row.type = layer.type;
      row.parameters = std::exchange(layer.seen, true) ? 0 : layer.parameters;
    }
    result.multiply_adds += row.multiply_adds;
    result.output_bytes += row.output_bytes;
    result.rows.push_back(std::move(row));
  }
  for (const Layer& layer : layers.all) {
    if (!layer.seen && layer.parameters > 0) {
      result.unused.push_back(
          {.layer = layer.name, .type = layer.type, .parameters = layer.parameters});
    }
  }
  return result;
}

std::string Summary::to_string() const {
  std::vector<std::vector<std::string>> lines;
  for (const SummaryRow& row : rows) {
    lines.push_back({row.layer,
                     row.type,
                     text::shape(row.output_shape),
                     text::count(row.parameters),
                     text::count(row.multiply_adds),
                     text::bytes(row.output_bytes)});
  }
  for (const SummaryRow& row : unused) {
    lines.push_back({row.layer, row.type, "not called", text::count(row.parameters), "0", "0"});
  }
  std::string text = text::table(
      {"layer", "type", "output shape", "parameters", "multiply-adds", "memory"}, lines);
  text += fmt::format("\nparameters     {}, of which {} are trained\n",
                      text::count(parameters),
                      text::count(trainable_parameters));
  text += fmt::format("multiply-adds  {} for an input of {}\n",
                      text::count(multiply_adds),
                      text::shape(input_size));
  text += fmt::format("memory         {}: input {}, outputs {}, parameters and buffers {}\n",
                      text::bytes(input_bytes + output_bytes + parameter_bytes),
                      text::bytes(input_bytes),
                      text::bytes(output_bytes),
                      text::bytes(parameter_bytes));
  return text;
}

std::string Summary::to_json() const {
  return nlohmann::ordered_json{{"rows", to_json_rows(rows)},
                                {"unused", to_json_rows(unused)},
                                {"input_size", input_size},
                                {"parameters", parameters},
                                {"trainable_parameters", trainable_parameters},
                                {"multiply_adds", multiply_adds},
                                {"input_bytes", input_bytes},
                                {"output_bytes", output_bytes},
                                {"parameter_bytes", parameter_bytes}}
      .dump();
}

}  // namespace argosy::engine
