#include "argosy/vision/models/resnet.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <tuple>

#include <ATen/Functions.h>
#include <torch/nn/init.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/vision/ops/convolution.h"
#include "argosy/vision/ops/norm_relu.h"

namespace argosy::vision {

namespace nn = torch::nn;

namespace {

struct Plan {
  int64_t depth;
  bool bottleneck;
  std::array<int, 4> blocks;
};
constexpr std::array<Plan, 5> kPlans{{{18, false, {2, 2, 2, 2}},
                                      {34, false, {3, 4, 6, 3}},
                                      {50, true, {3, 4, 6, 3}},
                                      {101, true, {3, 4, 23, 3}},
                                      {152, true, {3, 8, 36, 3}}}};

const Plan& plan_of(int64_t depth) {
  for (const Plan& plan : kPlans) {
    if (plan.depth == depth) {
      return plan;
    }
  }
  throw UsageError("vision.ResNet",
                   fmt::format("depth must be 18, 34, 50, 101 or 152, got {}", depth));
}

nn::Conv2d conv(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t groups = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel)
                        .stride(stride)
                        .padding(kernel / 2)
                        .groups(groups)
                        .bias(false));
}

struct BlockOptions {
  int64_t in;
  int64_t planes;
  int64_t stride;
  bool bottleneck;
  int64_t groups;
  int64_t width_per_group;
  /// Channels of a bottleneck's 3×3 convolution; torchvision rounds down before it multiplies.
  [[nodiscard]] int64_t width() const { return planes * width_per_group / 64 * groups; }
  [[nodiscard]] int64_t out() const { return bottleneck ? 4 * planes : planes; }
};

/// Two or three convolutions, and what came in added to what comes out.
class BlockImpl final : public nn::Cloneable<BlockImpl> {
 public:
  explicit BlockImpl(const BlockOptions& options) : options_(options) { reset(); }

  void reset() override {
    const auto [in, planes, stride, bottleneck, groups, width_per_group] = options_;
    convs_.clear();
    norms_.clear();
    nn::Sequential shortcut{nullptr};
    if (stride != 1 || in != options_.out()) {  // draws its numbers first, and is the last module
      nn::Conv2d projection = conv(in, options_.out(), 1, stride);
      shortcut = nn::Sequential(std::move(projection), engine::BatchNorm2d(options_.out()));
    }
    if (bottleneck) {
      const int64_t width = options_.width();
      add(conv(in, width, 1, 1), width);
      add(conv(width, width, 3, stride, groups), width);
      add(conv(width, 4 * planes, 1, 1), 4 * planes);
    } else {
      add(conv(in, planes, 3, stride), planes);
      add(conv(planes, planes, 3, 1), planes);
    }
    if (!shortcut.is_empty()) {
      downsample_ = register_module("downsample", std::move(shortcut));
    }
  }

  at::Tensor forward(const at::Tensor& input) {
    at::Tensor x = input;
    for (size_t i = 0; i + 1 < convs_.size(); ++i) {
      x = ops::norm_relu(norms_[i], ops::convolution(convs_[i], x));
    }
    x = ops::convolution(convs_.back(), x);
    return ops::norm_add_relu(norms_.back(), x, shortcut(input));
  }

  void zero_last_norm() { nn::init::zeros_(norms_.back()->weight); }

 private:
  /// A clone's Sequential has other modules than reset() gave it: they are asked for each time.
  at::Tensor shortcut(const at::Tensor& input) {
    if (downsample_.is_empty()) {
      return input;
    }
    nn::Conv2d projection(std::dynamic_pointer_cast<nn::Conv2dImpl>(downsample_->ptr(0)));
    engine::BatchNorm2d norm(
        std::dynamic_pointer_cast<engine::BatchNorm2dImpl>(downsample_->ptr(1)));
    return norm(ops::convolution(projection, input));
  }

  void add(nn::Conv2d conv, int64_t channels) {
    const std::string number = std::to_string(convs_.size() + 1);
    convs_.push_back(register_module("conv" + number, std::move(conv)));
    norms_.push_back(register_module("bn" + number, engine::BatchNorm2d(channels)));
  }

  BlockOptions options_;
  std::vector<nn::Conv2d> convs_;
  std::vector<engine::BatchNorm2d> norms_;
  nn::Sequential downsample_{nullptr};
};
TORCH_MODULE(Block);

void check_widths(const ResNetOptions& options) {
  const auto [depth, groups, width] =
      std::tuple(options.depth, options.groups, options.width_per_group);
  ARGOSY_CHECK(groups >= 1 && width >= 1,
               "vision.ResNet",
               "groups and width_per_group must be positive, got {} and {}",
               groups,
               width);
  ARGOSY_CHECK(plan_of(depth).bottleneck || (groups == 1 && width == 64),
               "vision.ResNet",
               "depth {} has no groups and a width of 64, got groups {} and width_per_group {}. "
               "They shape bottlenecks, which begin with depth 50",
               depth,
               groups,
               width);
}

ResNet make(const NamedResNetOptions& options,
            int64_t depth,
            int64_t groups = 1,
            int64_t width_per_group = 64) {
  return ResNet({.depth = depth,
                 .num_classes = options.num_classes,
                 .in_channels = options.in_channels,
                 .zero_init_residual = options.zero_init_residual,
                 .groups = groups,
                 .width_per_group = width_per_group});
}

}  // namespace

ResNetImpl::ResNetImpl(const ResNetOptions& options) : options_(options) {
  ARGOSY_CHECK(options.num_classes >= 1,
               "vision.ResNet",
               "num_classes must be positive, got {}",
               options.num_classes);
  ARGOSY_CHECK(options.in_channels >= 1,
               "vision.ResNet",
               "in_channels must be positive, got {}",
               options.in_channels);
  check_widths(options);
  reset();  // final class: the call is not virtual dispatch into a half-built object
}

void ResNetImpl::reset() {
  const Plan& plan = plan_of(options_.depth);
  int64_t channels = 64;
  conv1_ = register_module(
      "conv1",
      nn::Conv2d(
          nn::Conv2dOptions(options_.in_channels, channels, 7).stride(2).padding(3).bias(false)));
  bn1_ = register_module("bn1", engine::BatchNorm2d(channels));
  layers_.clear();
  for (size_t layer = 0; layer < plan.blocks.size(); ++layer) {
    const int64_t planes = int64_t{64} << layer;
    nn::Sequential blocks;
    for (int i = 0; i < plan.blocks[layer]; ++i) {
      const int64_t stride = layer > 0 && i == 0 ? 2 : 1;
      const BlockOptions block{
          channels, planes, stride, plan.bottleneck, options_.groups, options_.width_per_group};
      blocks->push_back(Block(block));
      channels = block.out();
    }
    layers_.push_back(register_module("layer" + std::to_string(layer + 1), std::move(blocks)));
  }
  fc_ = register_module("fc", nn::Linear(channels, options_.num_classes));
  initialise();
}

/// In the order of modules, which decides who draws which random numbers.
void ResNetImpl::initialise() {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* const one = module->as<nn::Conv2d>()) {
      nn::init::kaiming_normal_(one->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* const block = module->as<BlockImpl>();
        block != nullptr && options_.zero_init_residual) {
      block->zero_last_norm();
    }
  }
}

at::Tensor ResNetImpl::forward(const at::Tensor& images) {
  ARGOSY_CHECK(images.dim() == 4 && images.size(1) == options_.in_channels,
               "vision.ResNet",
               "input has the wrong shape: expected [N, {}, H, W], got {}",
               options_.in_channels,
               text::shape(images));
  at::Tensor x = ops::norm_relu(bn1_, conv1_(images));
  x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
  for (nn::Sequential& layer : layers_) {
    x = layer->forward(x);
  }
  return fc_(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
}

ResNet resnet18(const NamedResNetOptions& options) {
  return make(options, 18);
}
ResNet resnet34(const NamedResNetOptions& options) {
  return make(options, 34);
}
ResNet resnet50(const NamedResNetOptions& options) {
  return make(options, 50);
}
ResNet resnet101(const NamedResNetOptions& options) {
  return make(options, 101);
}
ResNet resnet152(const NamedResNetOptions& options) {
  return make(options, 152);
}
ResNet resnext50_32x4d(const NamedResNetOptions& options) {
  return make(options, 50, 32, 4);
}
ResNet resnext101_32x8d(const NamedResNetOptions& options) {
  return make(options, 101, 32, 8);
}
ResNet resnext101_64x4d(const NamedResNetOptions& options) {
  return make(options, 101, 64, 4);
}
ResNet wide_resnet50_2(const NamedResNetOptions& options) {
  return make(options, 50, 1, 128);
}
ResNet wide_resnet101_2(const NamedResNetOptions& options) {
  return make(options, 101, 1, 128);
}

}  // namespace argosy::vision
