// vision::ops::convolution() beside libtorch's operator, in turns, one after the other: the result,
// and result and both gradients. A line of a table for each shape: medians in milliseconds [least,
// greatest], and the median of the turns' ratios [least, greatest].
//
//     OMP_NUM_THREADS=1 convolution_bench [turns]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include "argosy/base/check.h"
#include "argosy/engine/autocast.h"
#include "argosy/engine/cpu.h"
#include "argosy/engine/version.h"
#include "argosy/vision/ops/convolution.h"

namespace {

namespace nn = torch::nn;
using namespace argosy;
constexpr auto kImagesLast = at::MemoryFormat::ChannelsLast;

/// Of ResNets on pictures of 96 and 224 pixels, and of 32.
struct Shape {
  int64_t images, in, pixels, out, kernel, stride;
};
constexpr Shape kShapes[]{{32, 512, 3, 512, 3, 1},
                          {32, 256, 6, 512, 3, 2},
                          {32, 256, 6, 512, 1, 2},
                          {32, 256, 6, 256, 3, 1},
                          {32, 128, 12, 256, 3, 2},
                          {32, 128, 12, 256, 1, 2},
                          {8, 512, 7, 512, 3, 1},
                          {8, 512, 14, 512, 3, 2},
                          {8, 512, 7, 2048, 1, 1},
                          {8, 2048, 7, 512, 1, 1},
                          {8, 1024, 14, 2048, 1, 2},
                          {128, 512, 4, 512, 3, 1},
                          {32, 512, 2, 512, 3, 1}};

using Call = at::Tensor (*)(nn::Conv2d&, const at::Tensor&);

at::Tensor own(nn::Conv2d& conv, const at::Tensor& x) {
  return vision::ops::convolution(conv, x);
}
at::Tensor libtorch(nn::Conv2d& conv, const at::Tensor& x) {
  return conv(x);
}

double time_of(Call call, nn::Conv2d& conv, const at::Tensor& x, bool bf16, bool backward) {
  const auto begin = std::chrono::steady_clock::now();
  at::Tensor y;
  {
    const engine::Autocast autocast({.enabled = bf16});
    const at::AutoGradMode mode(backward);
    y = call(conv, x);
  }
  if (backward) {
    y.backward(y.detach());
    x.mutable_grad() = at::Tensor();
    conv->weight.mutable_grad() = at::Tensor();
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

std::string spread(std::vector<double> values, int digits) {
  std::sort(values.begin(), values.end());
  return fmt::format("{:.{}f} [{:.{}f} {:.{}f}]",
                     values[values.size() / 2],
                     digits,
                     values.front(),
                     digits,
                     values.back(),
                     digits);
}

std::string compare(const Shape& shape, bool bf16, bool backward, int turns) {
  nn::Conv2d conv(nn::Conv2dOptions(shape.in, shape.out, shape.kernel)
                      .stride(shape.stride)
                      .padding(shape.kernel / 2)
                      .bias(false));
  conv->weight.set_data(conv->weight.contiguous(kImagesLast));
  const at::Tensor x =
      at::randn({shape.images, shape.in, shape.pixels, shape.pixels}).contiguous(kImagesLast);
  x.requires_grad_();
  {
    const engine::Autocast autocast({.enabled = bf16});
    const at::Tensor expected = libtorch(conv, x).to(at::kFloat);
    const double apart = (own(conv, x).to(at::kFloat) - expected).abs().max().item<double>();
    ARGOSY_CHECK(apart <= 0.01 * expected.abs().max().item<double>(),
                 "convolution_bench",
                 "the results are {} apart",
                 apart);
  }
  std::vector<double> ours, theirs, ratios;
  for (int turn = -1; turn < turns; ++turn) {
    const double a = time_of(own, conv, x, bf16, backward);
    const double b = time_of(libtorch, conv, x, bf16, backward);
    if (turn >= 0) {
      ours.push_back(a);
      theirs.push_back(b);
      ratios.push_back(a / b);
    }
  }
  return fmt::format("{} | {} | {}", spread(ours, 2), spread(theirs, 2), spread(ratios, 2));
}

}  // namespace

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::max(1, std::atoi(argv[1])) : 9;
  engine::setup_cpu();
  fmt::print("libtorch {}, {}\n\n", engine::torch_version(), engine::kernels_in_use());
  fmt::print(
      "| type | images | pixels | kernel | result: own | libtorch | ratio |"
      " with gradients: own | libtorch | ratio |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const bool bf16 : {false, true}) {
    for (const Shape& shape : kShapes) {
      fmt::print("| {} | {} | {}² × {} → {} | {}², every {} | {} | {} |\n",
                 bf16 ? "bf16" : "f32",
                 shape.images,
                 shape.pixels,
                 shape.in,
                 shape.out,
                 shape.kernel,
                 shape.stride,
                 compare(shape, bf16, false, turns),
                 compare(shape, bf16, true, turns));
      std::fflush(stdout);
    }
  }
}
