#include "argosy/parallel/ddp/format_choice.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include "argosy/engine/autocast.h"
#include "argosy/engine/random_state.h"

namespace argosy::parallel::ddp {
namespace {

using engine::MemoryFormat;

/// Sums in another order differ by rounding; what is wrong differs by more than this part of the
/// largest value.
double tolerance(const at::Tensor& output) {
  const at::ScalarType type = output.scalar_type();
  const bool tf32 =  // 10 bits
      output.is_cuda() && type == at::kFloat && at::globalContext().allowTF32CuDNN();
  return type == at::kBFloat16 || type == at::kHalf || tf32 ? 5e-2 : 1e-3;
}

/// What a forward can change without gradients, put back at the end.
class PutBack {
 public:
  explicit PutBack(torch::nn::Module& module)
      : layout_(module), random_(engine::random_state(module)) {
    for (const auto& each : module.modules()) {
      modes_.emplace_back(each, each->is_training());
    }
    for (const at::Tensor& buffer : module.buffers()) {
      if (buffer.defined()) {
        buffers_.emplace_back(buffer, buffer.detach().clone());
      }
    }
    module.eval();
  }
  PutBack(const PutBack&) = delete;
  PutBack& operator=(const PutBack&) = delete;
  PutBack(PutBack&&) = delete;
  PutBack& operator=(PutBack&&) = delete;
  ~PutBack() {
    layout_.restore();
    for (const auto& [buffer, values] : buffers_) {
      buffer.copy_(values);
    }
    for (const auto& [module, training] : modes_) {  // parents first: train() reaches the children
      module->train(training);
    }
    engine::put_back_random_state(random_);
  }

 private:
  engine::Layout layout_;
  engine::StateDict random_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_{};
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_{};
};

/// Empty when `got` is `wanted` up to rounding, in an order that the program expects.
std::string compare(const std::vector<at::Tensor>& wanted, const std::vector<at::Tensor>& got) {
  if (wanted.size() != got.size()) {
    return fmt::format("its output has {} tensors then instead of {}", got.size(), wanted.size());
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const at::Tensor& a = wanted[i];
    const at::Tensor& b = got[i];
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) {
      return "its output has another shape or type then";
    }
    if (a.is_contiguous() && !b.is_contiguous()) {
      return "its output is an image, and the program may expect it row-major";
    }
    if (!a.is_floating_point() || a.numel() == 0) {
      continue;
    }
    const double largest = a.abs().max().to(at::kDouble).item<double>();
    const double difference = (a - b).abs().max().to(at::kDouble).item<double>();
    if (!(difference <= tolerance(a) * largest)) {  // NaN objects too
      return fmt::format("its output differs then by {:.1e}, where {:.1e} is the largest value",
                         difference,
                         largest);
    }
  }
  return {};
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::vector<at::Tensor> copies(std::vector<at::Tensor> outputs) {
  for (at::Tensor& each : outputs) {
    each = each.clone();  // it may be a buffer of the model that the next forward writes again
  }
  return outputs;
}

}  // namespace

FormatChoice choose_by_layers(const torch::nn::Module& module, MemoryFormat wanted) {
  if (wanted != MemoryFormat::kAuto) {
    return {wanted, false, "asked for"};
  }
  engine::ChannelsLastAdvice advice = engine::advise_channels_last(module);
  return {MemoryFormat::kAsIs, advice.worth_trying, std::move(advice.reason)};
}

std::string objection_to_channels_last(torch::nn::Module& module, const Forward& forward) {
  const at::NoGradGuard no_grad;
  // In mixed precision the forward that follows must not find weights without a graph.
  const engine::AutocastUncached no_trace;
  const PutBack state(module);
  std::vector<at::Tensor> wanted;
  try {
    wanted = copies(forward(MemoryFormat::kAsIs));
  } catch (const std::exception& error) {
    return "its forward fails in evaluation mode: " + first_line(error.what());
  }
  if (wanted.empty()) {
    return "its output holds no tensor to compare";
  }
  try {
    engine::lay_out(module, MemoryFormat::kChannelsLast);
    if (const std::string name = engine::not_laid_out(module, MemoryFormat::kChannelsLast);
        !name.empty()) {
      return name + " shares its memory with other tensors";
    }
    return compare(wanted, forward(MemoryFormat::kChannelsLast));
  } catch (const std::exception& error) {
    return "it fails then: " + first_line(error.what());
  }
}

}  // namespace argosy::parallel::ddp
