#include "argosy/engine/synced_norm.h"

#include <cmath>
#include <ostream>

#include <ATen/Functions.h>
#include <torch/autograd.h>
#include <torch/nn/functional/batchnorm.h>

#include "argosy/base/check.h"

namespace argosy::engine {
namespace {

std::vector<double> numbers(const at::Tensor& values) {
  const at::Tensor f64 = values.to(at::kCPU, at::kDouble).contiguous();
  return {f64.data_ptr<double>(), f64.data_ptr<double>() + f64.numel()};
}

/// All dimensions but that of the channels.
std::vector<int64_t> others(const at::Tensor& images) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < images.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

/// One number for each channel, to be multiplied with the images.
at::Tensor across(const at::Tensor& channels, const at::Tensor& images) {
  std::vector<int64_t> sizes(static_cast<size_t>(images.dim()), 1);
  sizes[1] = -1;
  return channels.view(sizes);
}

/// The type that sums are taken in.
at::ScalarType wide(const at::Tensor& images) {
  return images.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

ChannelMoments moments_of(const at::Tensor& images) {
  const auto channels = static_cast<size_t>(images.size(1));
  ChannelMoments out{std::vector<double>(channels), std::vector<double>(channels), 0};
  if (images.numel() > 0) {
    const auto [variance, mean] =
        at::var_mean(images.to(wide(images)), others(images), /*unbiased=*/false);
    out.mean = numbers(mean);
    out.variance = numbers(variance);
    out.count = static_cast<double>(images.numel()) / static_cast<double>(channels);
  }
  return out;
}

struct Norm : torch::autograd::Function<Norm> {
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& images,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            const at::Tensor& mean,
                            const at::Tensor& inverse_std,
                            const at::Tensor& count,
                            const NormPeersPtr& peers) {
    context->save_for_backward({images, weight, mean, inverse_std, count});
    context->saved_data["peers"] = c10::IValue::make_capsule(peers);
    at::Tensor out =
        (images.to(mean.scalar_type()) - across(mean, images)) * across(inverse_std, images);
    if (weight.numel() > 0) {
      out = out * across(weight, images) + across(bias, images);
    }
    return out.to(images.scalar_type());
  }

  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& grads) {
    ARGOSY_CHECK(!at::GradMode::is_enabled(),
                 "engine.batch_norm",
                 "a second derivative through a norm over several processes is not there. Give "
                 "the norm back its own process: convert_sync_batchnorm() is what took it away");
    const Tensors saved = context->get_saved_variables();
    const at::Tensor& images = saved[0];
    const at::Tensor& weight = saved[1];
    const at::Tensor dy = grads[0].to(saved[2].scalar_type());
    const at::Tensor normed =
        (images.to(dy.scalar_type()) - across(saved[2], images)) * across(saved[3], images);
    const at::Tensor sum = dy.sum(others(images));
    const at::Tensor product = (dy * normed).sum(others(images));

    const at::Tensor all = at::stack({sum, product}).to(at::kDouble).contiguous();
    const auto peers =
        c10::static_intrusive_pointer_cast<NormPeers>(context->saved_data["peers"].toCapsule());
    peers->sum(all);
    const at::Tensor means = (all / saved[4]).to(sum.options());
    at::Tensor dx = (dy - across(means[0], images) - normed * across(means[1], images)) *
                    across(saved[3], images);
    Tensors out(7);
    if (weight.numel() > 0) {
      dx = dx * across(weight, images);
      out[1] = product.to(weight.scalar_type());
      out[2] = sum.to(weight.scalar_type());
    }
    out[0] = dx.to(images.scalar_type());
    return out;
  }
};

/// As torch::nn::BatchNormImplBase::forward().
at::Tensor libtorchs_norm(const NormState& norm, const at::Tensor& images) {
  double factor = norm.options.momentum().value_or(0.0);
  if (norm.training && norm.options.track_running_stats()) {
    norm.num_batches_tracked.add_(1);
    if (!norm.options.momentum().has_value()) {
      factor = 1.0 / norm.num_batches_tracked.item<double>();
    }
  }
  return torch::nn::functional::detail::batch_norm(
      images,
      norm.running_mean,
      norm.running_var,
      norm.weight,
      norm.bias,
      norm.training || !norm.options.track_running_stats(),
      factor,
      norm.options.eps());
}

// --- On devices: the same arithmetic, in tensors that nobody waits for -------------------------

/// f64: [channels], [channels] and 0-dim.
struct DeviceMoments {
  at::Tensor mean{};
  at::Tensor variance{};
  at::Tensor count{};
};

/// The moments of one process as one tensor, f64: means, variances and the count.
at::Tensor packed_moments(const at::Tensor& images) {
  const int64_t channels = images.size(1);
  const at::TensorOptions options = images.options().dtype(at::kDouble);
  if (images.numel() == 0) {
    return at::zeros({2 * channels + 1}, options);
  }
  const auto [variance, mean] =
      at::var_mean(images.to(wide(images)), others(images), /*unbiased=*/false);
  const auto count = static_cast<double>(images.numel() / channels);
  return at::cat({mean.to(at::kDouble), variance.to(at::kDouble), at::full({1}, count, options)});
}

DeviceMoments merge_on_device(const at::Tensor& images, NormPeers& peers) {
  const int64_t channels = images.size(1);
  const at::Tensor all = peers.gather(packed_moments(images));
  DeviceMoments total{.mean = at::zeros({channels}, all.options()),
                      .variance = at::zeros({channels}, all.options()),
                      .count = at::zeros({}, all.options())};
  for (const at::Tensor& one : all.unbind()) {
    const at::Tensor mean = one.slice(0, 0, channels);
    const at::Tensor variance = one.slice(0, channels, 2 * channels);
    const at::Tensor count = one[2 * channels];
    const at::Tensor together = total.count + count;
    const at::Tensor share = count / together.clamp_min(1);  // 0 as long as nobody had samples
    const at::Tensor delta = mean - total.mean;
    total.variance = total.variance +
                     ((variance - total.variance) * share + delta * delta * share * (1 - share));
    total.mean = total.mean + delta * share;
    total.count = together;
  }
  return total;
}

void check_enough_values(double count) {
  ARGOSY_CHECK(count > 1,
               "engine.batch_norm",
               "expected more than one value for each channel in the batches of all processes "
               "together, got {}",
               count);
}

void move_towards(const NormState& norm, const at::Tensor& mean, const at::Tensor& unbiased) {
  if (!norm.options.track_running_stats()) {
    return;
  }
  const at::NoGradGuard no_grad;
  norm.num_batches_tracked.add_(1);
  const double factor = norm.options.momentum().has_value()
                            ? *norm.options.momentum()
                            : 1.0 / norm.num_batches_tracked.item<double>();
  // As libtorch's norm does it: backward of an earlier use does not take it for a change.
  const auto move = [&](const at::Tensor& running, const at::Tensor& towards) {
    running.variable_data().mul_(1 - factor).add_(towards.to(running.options()), factor);
  };
  move(norm.running_mean, mean);
  move(norm.running_var, unbiased);
}

at::Tensor norm_with(const NormState& norm,
                     const at::Tensor& images,
                     const at::Tensor& mean,
                     const at::Tensor& inverse_std,
                     const at::Tensor& count) {
  const at::TensorOptions options = images.options().dtype(wide(images));
  // libtorch 1.13 takes no undefined tensor here: a norm without weights gives empty ones.
  const at::Tensor none = at::empty({0}, options);
  return Norm::apply(images,
                     norm.weight.defined() ? norm.weight : none,
                     norm.bias.defined() ? norm.bias : none,
                     mean.to(options),
                     inverse_std.to(options),
                     count,
                     norm.peers);
}

at::Tensor norm_on_device(const NormState& norm, const at::Tensor& images) {
  DeviceMoments moments;
  at::Tensor inverse_std;
  {
    const at::NoGradGuard no_grad;
    moments = merge_on_device(images, *norm.peers);
    if (images.numel() <= images.size(1)) {  // else there are enough
      check_enough_values(moments.count.item<double>());
    }
    move_towards(norm, moments.mean, moments.variance * moments.count / (moments.count - 1));
    inverse_std = 1 / (moments.variance + norm.options.eps()).sqrt();
  }
  return norm_with(norm, images, moments.mean, inverse_std, moments.count);
}

}  // namespace

ChannelMoments merge(const ChannelMoments& mine, NormPeers& peers) {
  const size_t channels = mine.mean.size();
  std::vector<double> packed = mine.mean;
  packed.insert(packed.end(), mine.variance.begin(), mine.variance.end());
  packed.push_back(mine.count);
  const at::Tensor all = peers.gather(at::tensor(packed, at::kDouble)).contiguous();
  const size_t width = packed.size();
  ChannelMoments total{std::vector<double>(channels), std::vector<double>(channels), 0};
  for (int64_t rank = 0; rank < all.size(0); ++rank) {
    const double* one = all.data_ptr<double>() + static_cast<size_t>(rank) * width;
    const double count = one[width - 1];
    if (count == 0) {
      continue;
    }
    const double share = count / (total.count + count);  // Chan, Golub and LeVeque 1979
    for (size_t c = 0; c < channels; ++c) {
      const double delta = one[c] - total.mean[c];
      total.mean[c] += delta * share;
      total.variance[c] +=
          (one[channels + c] - total.variance[c]) * share + delta * delta * share * (1 - share);
    }
    total.count += count;
  }
  check_enough_values(total.count);
  return total;
}

void move_running_statistics(const NormState& norm, const ChannelMoments& moments) {
  std::vector<double> unbiased;
  for (const double each : moments.variance) {
    unbiased.push_back(each * moments.count / (moments.count - 1));
  }
  move_towards(norm, at::tensor(moments.mean, at::kDouble), at::tensor(unbiased, at::kDouble));
}

at::Tensor batch_norm(const NormState& norm, const at::Tensor& images) {
  if (norm.peers == nullptr || !norm.training) {
    return libtorchs_norm(norm, images);
  }
  if (!images.is_cpu()) {
    return norm_on_device(norm, images);
  }
  ChannelMoments moments;
  {
    const at::NoGradGuard no_grad;
    moments = merge(moments_of(images), *norm.peers);
  }
  move_running_statistics(norm, moments);
  std::vector<double> inverse_std;
  for (const double each : moments.variance) {
    inverse_std.push_back(1 / std::sqrt(each + norm.options.eps()));
  }
  return norm_with(norm,
                   images,
                   at::tensor(moments.mean, at::kDouble),
                   at::tensor(inverse_std, at::kDouble),
                   at::scalar_tensor(moments.count, at::kDouble));
}

void SyncedNorm::check_dims(size_t dims, const at::Tensor& images) {
  const auto wanted = static_cast<int64_t>(dims) + 2;
  ARGOSY_CHECK(images.dim() == wanted || (dims == 1 && images.dim() == 2),
               "engine.batch_norm",
               "expected {}{} dimensions, [N, C, ...], got {}",
               dims == 1 ? "2 or " : "",
               wanted,
               images.dim());
}

void SyncedNorm::print(std::ostream& stream,
                       size_t dims,
                       const torch::nn::BatchNormOptions& options) {
  stream << "torch::nn::BatchNorm" << dims << "d(" << options.num_features()
         << ", eps=" << options.eps() << ", momentum=";
  options.momentum().has_value() ? stream << *options.momentum() : stream << "None";
  stream << std::boolalpha << ", affine=" << options.affine()
         << ", track_running_stats=" << options.track_running_stats() << ")";
}

}  // namespace argosy::engine
