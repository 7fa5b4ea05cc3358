#include "argosy/engine/memory_format.h"

#include <fmt/format.h>

#include <array>

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/conv.h>

#include "argosy/engine/device.h"
#include "argosy/engine/gpu_runtime.h"
#include "argosy/engine/layout.h"

namespace argosy::engine {
namespace {

constexpr std::array<std::pair<MemoryFormat, std::string_view>, 4> kNames = {{
    {MemoryFormat::kAsIs, "as_is"},
    {MemoryFormat::kAuto, "auto"},
    {MemoryFormat::kContiguous, "contiguous"},
    {MemoryFormat::kChannelsLast, "channels_last"},
}};

at::MemoryFormat engine_format(MemoryFormat format) {
  return format == MemoryFormat::kChannelsLast ? at::MemoryFormat::ChannelsLast
                                               : at::MemoryFormat::Contiguous;
}

bool is_fixed(MemoryFormat format) {
  return format == MemoryFormat::kContiguous || format == MemoryFormat::kChannelsLast;
}

template <typename Visit>
void for_each_4d(const torch::nn::Module& module, const Visit& visit) {
  const auto each = [&](const auto& items) {
    for (const auto& item : items) {
      const at::Tensor& tensor = item.value();
      if (tensor.defined() && tensor.layout() == at::kStrided && tensor.dim() == 4) {
        visit(item.key(), tensor);
      }
    }
  };
  each(module.named_parameters());
  each(module.named_buffers());
}

/// The same memory read in other strides, and its values written there in the new order.
void restride(at::Tensor tensor, at::IntArrayRef strides) {
  if (tensor.strides() == strides) {
    return;
  }
  const at::Tensor values = tensor.detach().clone();
  const at::Tensor place =
      at::empty({0}, values.options())
          .set_(tensor.storage(), tensor.storage_offset(), tensor.sizes(), strides);
  place.copy_(values);
  tensor.set_data(place);
}

/// On tensor cores: f32 as TF32 only. MIOpen's kernels have not been measured.
bool has_fast_kernels_of_cudnn(at::ScalarType type) {
  return at::detail::getCUDAHooks().compiledWithCuDNN() && at::globalContext().userEnabledCuDNN() &&
         !gpu::is_rocm() &&
         (type == at::kHalf || type == at::kBFloat16 ||
          (type == at::kFloat && at::globalContext().allowTF32CuDNN()));
}

bool has_fast_kernels(const at::Tensor& weight) {
  const at::ScalarType type = weight.scalar_type();
  return weight.is_cpu() ? type == at::kFloat || type == at::kBFloat16
                         : weight.is_cuda() && has_fast_kernels_of_cudnn(type);
}

bool fast_convolution(const torch::nn::Module& layer) {
  const auto suits = [](const auto* convolution) { return has_fast_kernels(convolution->weight); };
  if (const auto* plain = layer.as<torch::nn::Conv2d>()) {
    return suits(plain);
  }
  const auto* transposed = layer.as<torch::nn::ConvTranspose2d>();
  return transposed != nullptr && suits(transposed);
}

}  // namespace

std::string_view to_string(MemoryFormat format) {
  for (const auto& [known, name] : kNames) {
    if (known == format) {
      return name;
    }
  }
  return "unknown";
}

std::optional<MemoryFormat> memory_format(std::string_view name) {
  for (const auto& [format, known] : kNames) {
    if (known == name) {
      return format;
    }
  }
  return std::nullopt;
}

at::Tensor in_format(const at::Tensor& tensor, MemoryFormat format) {
  const bool image = tensor.defined() && tensor.layout() == at::kStrided && tensor.dim() == 4 &&
                     tensor.is_floating_point();
  return image && is_fixed(format) ? tensor.contiguous(engine_format(format)) : tensor;
}

bool has_own_memory(const at::Tensor& tensor) {
  return is_dense(tensor) && tensor.unsafeGetTensorImpl()->storage().use_count() == 1;
}

void lay_out(const torch::nn::Module& module, MemoryFormat format) {
  if (!is_fixed(format)) {
    return;
  }
  const c10::NoGradGuard no_grad;
  for_each_4d(module, [&](const std::string& /*name*/, const at::Tensor& tensor) {
    if (has_own_memory(tensor)) {
      const auto options = tensor.options().device(at::kMeta).memory_format(engine_format(format));
      restride(tensor, at::empty(tensor.sizes(), options).strides());
    }
  });
}

std::string not_laid_out(const torch::nn::Module& module, MemoryFormat format) {
  std::string found;
  for_each_4d(module, [&](const std::string& name, const at::Tensor& tensor) {
    if (found.empty() && is_fixed(format) && !tensor.is_contiguous(engine_format(format))) {
      found = name;
    }
  });
  return found;
}

Layout::Layout(const torch::nn::Module& module) {
  for_each_4d(module, [&](const std::string& /*name*/, const at::Tensor& tensor) {
    tensors_.emplace_back(tensor, tensor.strides().vec());
  });
}

void Layout::restore() const {
  const c10::NoGradGuard no_grad;
  for (const auto& [tensor, strides] : tensors_) {
    restride(tensor, strides);
  }
}

ChannelsLastAdvice advise_channels_last(const torch::nn::Module& module) {
  const bool mkldnn = at::globalContext().hasMKLDNN() && at::globalContext().userEnabledMkldnn();
  if (device_of(module).is_cpu() && !mkldnn) {
    return {false, "this libtorch computes convolutions without oneDNN"};
  }
  int64_t convolutions = 0;
  for (const auto& layer : module.modules()) {
    convolutions += fast_convolution(*layer) ? 1 : 0;
  }
  if (convolutions == 0) {
    return {false, "no 2-d convolution in f32 or 16 bits that is faster so"};
  }
  std::string obstacle;
  for_each_4d(module, [&](const std::string& name, const at::Tensor& tensor) {
    if (obstacle.empty() && !tensor.is_contiguous()) {
      obstacle = fmt::format("{} is laid out by the program already", name);
    } else if (obstacle.empty() && !has_own_memory(tensor)) {
      obstacle = fmt::format("{} shares its memory with other tensors", name);
    }
  });
  if (!obstacle.empty()) {
    return {false, obstacle};
  }
  return {true, fmt::format("{} convolution{}", convolutions, convolutions == 1 ? "" : "s")};
}

}  // namespace argosy::engine
