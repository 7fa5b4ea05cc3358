#include "argosy/vision/ops/batch_norm.h"

#include <algorithm>
#include <cmath>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/autograd.h>

#include "argosy/base/check.h"
#include "argosy/engine/coming_memory.h"
#include "argosy/vision/ops/norm.h"

namespace argosy::vision::ops {
namespace {

struct Moments {
  engine::ChannelMoments channels{};
  bool far = false;  // some mean is many deviations from what it was taken around
};

/// Squares of deviations: beyond, f32 loses digits of the variance that count.
constexpr double kFar = 1e3;

/// Around `shift`, one number for each channel: differences of large numbers would lose the
/// variance.
Moments moments_around(const float* shift, const at::Tensor& images) {
  const kernels::ImageShape row = row_of(images);
  const kernels::Pixels x = pixels_of(images);
  const std::vector<double> sums = sums_over_parts(
      row, [&](int64_t at, const kernels::ImageShape& part, double* first, double* second) {
        kernels::add_moments(x.from(at), part, shift, first, second);
      });
  const auto count = values_per_channel(images);
  Moments out;
  out.channels.count = count;
  for (int64_t c = 0; c < row.channels; ++c) {
    const double shifted = sums[static_cast<std::size_t>(c)] / count;
    const double square = sums[static_cast<std::size_t>(row.channels + c)] / count;
    out.channels.mean.push_back(shifted + shift[c]);
    const double variance = square - shifted * shifted;
    out.channels.variance.push_back(variance < 0 ? 0 : variance);  // NaN stays
    out.far = out.far || shifted * shifted > kFar * variance;
  }
  return out;
}

engine::ChannelMoments moments_of(const at::Tensor& images) {
  const torch::NoGradGuard no_grad;
  const at::Tensor first_pixel =
      images.select(0, 0).select(1, 0).select(1, 0).to(at::kFloat).contiguous();
  const Moments from_first_pixel = moments_around(first_pixel.data_ptr<float>(), images);
  if (!from_first_pixel.far) {
    return from_first_pixel.channels;
  }
  const std::vector<float> mean(from_first_pixel.channels.mean.begin(),
                                from_first_pixel.channels.mean.end());
  return moments_around(mean.data(), images).channels;
}

at::Tensor of(const std::vector<float>& values) {
  return at::tensor(values, at::kFloat);
}

engine::NormPeersPtr peers_in(torch::autograd::AutogradContext& context) {
  const auto found = context.saved_data.find("peers");
  return found == context.saved_data.end()
             ? engine::NormPeersPtr()
             : c10::static_intrusive_pointer_cast<engine::NormPeers>(found->second.toCapsule());
}

/// At most so many sums are taken beside each other, of no fewer elements than are worth a thread.
constexpr int64_t kParts = 64;
constexpr int64_t kElementsOfAPart = 16384;

int64_t parts_of(const kernels::ImageShape& row) {
  return std::clamp<int64_t>(row.elements() / kElementsOfAPart, 1, kParts);
}

/// body(first element, part k of `parts`)
template <typename Body>
void with_part(const kernels::ImageShape& row, int64_t k, int64_t parts, const Body& body) {
  const int64_t begin = k * row.width / parts;
  const int64_t end = (k + 1) * row.width / parts;
  body(begin * row.channels,
       kernels::ImageShape{.height = 1, .width = end - begin, .channels = row.channels});
}

/// add(chunk, first, second) for all chunks, in parallel; their sums, in order.
template <typename Add>
std::vector<double> sums_over(int64_t chunks, int64_t channels, const Add& add) {
  std::vector<double> each(static_cast<std::size_t>(2 * chunks * channels));
  for_images(chunks, [&](int64_t chunk) {
    double* const first = each.data() + 2 * chunk * channels;
    add(chunk, first, first + channels);
  });
  std::vector<double> total(static_cast<std::size_t>(2 * channels));
  for (std::size_t chunk = 0; chunk < static_cast<std::size_t>(chunks); ++chunk) {
    for (std::size_t i = 0; i < total.size(); ++i) {
      total[i] += each[chunk * total.size() + i];
    }
  }
  return total;
}

}  // namespace

bool can_fuse(const engine::NormState& norm, const at::Tensor& images) {
  return norm.training && norm.options.affine() && images.dim() == 4 &&
         (images.scalar_type() == at::kFloat || images.scalar_type() == at::kBFloat16) &&
         images.device().is_cpu() && norm.weight.scalar_type() == at::kFloat &&
         images.size(1) == norm.weight.numel() && images.numel() > images.size(1) &&
         images.is_contiguous(kLast);
}

Norm::Norm(const torch::nn::BatchNorm2d& norm)
    : state_{.options = norm->options,
             .weight = norm->weight,
             .bias = norm->bias,
             .running_mean = norm->running_mean,
             .running_var = norm->running_var,
             .num_batches_tracked = norm->num_batches_tracked,
             .training = norm->is_training(),
             .peers = {}} {}

kernels::PixelsToWrite pixels_to_write(const at::Tensor& images) {
  if (!images.defined()) {
    return {};
  }
  return {.data = images.data_ptr(), .bf16 = images.scalar_type() == at::kBFloat16};
}

kernels::Pixels pixels_of(const at::Tensor& images) {
  const kernels::PixelsToWrite same = pixels_to_write(images);
  return {.data = same.data, .bf16 = same.bf16};
}

kernels::ImageShape shape_of(const at::Tensor& images) {
  return {.height = images.size(2), .width = images.size(3), .channels = images.size(1)};
}

kernels::ImageShape row_of(const at::Tensor& images) {
  const int64_t channels = images.size(1);
  return {.height = 1, .width = images.numel() / channels, .channels = channels};
}

double values_per_channel(const at::Tensor& images) {
  return static_cast<double>(images.numel()) / static_cast<double>(images.size(1));
}

void for_images(int64_t images, const std::function<void(int64_t)>& body) {
  at::parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      body(n);
    }
  });
}

void for_parts(const kernels::ImageShape& row,
               const std::function<void(int64_t, const kernels::ImageShape&)>& body) {
  const int64_t parts = parts_of(row);
  for_images(parts, [&](int64_t k) { with_part(row, k, parts, body); });
}

std::vector<double> sums_over_parts(
    const kernels::ImageShape& row,
    const std::function<void(int64_t, const kernels::ImageShape&, double*, double*)>& add) {
  const int64_t parts = parts_of(row);
  return sums_over(parts, row.channels, [&](int64_t k, double* first, double* second) {
    with_part(row, k, parts, [&](int64_t at, const kernels::ImageShape& part) {
      add(at, part, first, second);
    });
  });
}

std::vector<double> sums_over_images(int64_t images,
                                     int64_t channels,
                                     const std::function<void(int64_t, double*, double*)>& add) {
  const int64_t chunks = std::min(images, kParts);
  return sums_over(chunks, channels, [&](int64_t chunk, double* first, double* second) {
    for (int64_t n = chunk * images / chunks; n < (chunk + 1) * images / chunks; ++n) {
      add(n, first, second);
    }
  });
}

BatchStatistics take_statistics(const engine::NormState& norm, const at::Tensor& images) {
  engine::ChannelMoments moments = moments_of(images);
  if (norm.peers != nullptr) {
    moments = engine::merge(moments, *norm.peers);
  }
  std::vector<float> inverse_std;
  for (const double each : moments.variance) {
    inverse_std.push_back(static_cast<float>(1 / std::sqrt(each + norm.options.eps())));
  }
  engine::move_running_statistics(norm, moments);
  return {.mean = of({moments.mean.begin(), moments.mean.end()}),
          .inverse_std = of(inverse_std),
          .count = moments.count,
          .peers = norm.peers};
}

void keep(torch::autograd::AutogradContext& context, const BatchStatistics& batch) {
  context.saved_data["count"] = batch.count;
  if (batch.peers != nullptr) {
    context.saved_data["peers"] = c10::IValue::make_capsule(batch.peers);
  }
}

NormGradient norm_gradient(const std::vector<double>& sums,
                           const at::Tensor& weight,
                           const at::Tensor& inverse_std,
                           torch::autograd::AutogradContext& context) {
  const engine::DirectUse use({weight});
  const auto channels = static_cast<std::size_t>(weight.numel());
  const double count = context.saved_data["count"].toDouble();
  std::vector<double> all = sums;
  if (const engine::NormPeersPtr peers = peers_in(context)) {
    peers->sum(at::from_blob(all.data(), {static_cast<int64_t>(all.size())}, at::kDouble));
  }
  NormGradient out;
  std::vector<float> of_weight, of_bias;
  for (std::size_t c = 0; c < channels; ++c) {
    const double sum = sums[c];
    const double product = sums[channels + c];
    const double inverse = inverse_std.data_ptr<float>()[c];
    const double factor = weight.data_ptr<float>()[c] * inverse;
    of_bias.push_back(static_cast<float>(sum));
    of_weight.push_back(static_cast<float>(product));
    out.scale.push_back(static_cast<float>(factor));
    out.slope.push_back(static_cast<float>(-factor * inverse * all[channels + c] / count));
    out.level.push_back(static_cast<float>(-factor * all[c] / count));
  }
  out.weight = of(of_weight);
  out.bias = of(of_bias);
  return out;
}

at::Tensor recorded_norm(const at::Tensor& images,
                         const at::Tensor& weight,
                         const at::Tensor& bias,
                         const at::Tensor& inverse_std,
                         torch::autograd::AutogradContext& context) {
  ARGOSY_CHECK(peers_in(context) == nullptr,
               "vision.ops",
               "a second derivative through a norm over several processes is not there");
  const at::Tensor wide = images.to(weight.scalar_type());  // squares leave the range of f16
  const at::Tensor centred = wide - wide.mean({0, 2, 3}, true);
  const at::Tensor variance = centred.square().mean({0, 2, 3}, true);
  const at::Tensor wanted = inverse_std.view({1, -1, 1, 1});
  const at::Tensor spare = wanted.pow(-2) - variance.detach();  // the norm's epsilon
  return centred * (variance + spare).rsqrt() * weight.view({1, -1, 1, 1}) +
         bias.view({1, -1, 1, 1});
}

std::vector<at::Tensor> recorded_gradients(const at::Tensor& output,
                                           const at::Tensor& dy,
                                           const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> wanted;
  for (const at::Tensor& each : inputs) {
    if (each.requires_grad()) {
      wanted.push_back(each);
    }
  }
  if (wanted.empty()) {
    return std::vector<at::Tensor>(inputs.size());
  }
  std::vector<at::Tensor> found = torch::autograd::grad({output},
                                                        wanted,
                                                        {dy},
                                                        /*retain_graph=*/true,
                                                        /*create_graph=*/true,
                                                        /*allow_unused=*/true);
  std::vector<at::Tensor> out;
  auto next = found.begin();
  for (const at::Tensor& each : inputs) {
    out.push_back(each.requires_grad() ? *next++ : at::Tensor());
  }
  return out;
}

std::vector<at::Tensor> recorded_relu_gradients(const std::vector<at::Tensor>& inputs,
                                                const at::Tensor& inverse_std,
                                                const at::Tensor& y,
                                                const at::Tensor& dy,
                                                torch::autograd::AutogradContext& context) {
  const at::Tensor normed = recorded_norm(inputs[0], inputs[1], inputs[2], inverse_std, context);
  const at::Tensor passed = dy.masked_fill((y.defined() ? y : normed) <= 0, 0);  // NaN passes
  std::vector<at::Tensor> out = recorded_gradients(normed, passed, inputs);
  out.push_back(y.defined() ? passed : at::Tensor());
  return out;
}

}  // namespace argosy::vision::ops
