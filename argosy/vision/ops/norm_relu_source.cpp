#include "argosy/vision/ops/norm_relu_source.h"

namespace argosy::vision::ops::device {
namespace {

// A block's threads are channels, in vectors of 16 bytes, by pixels; the y of a block in the grid
// says which channels. So a thread keeps its channels, and neighbours read neighbouring memory.
// Sums are made in one order, whatever runs first: over a thread's pixels, over the block's
// threads, over the blocks.
constexpr const char* kKernels = R"(
enum { kThreads = 256, kColumns = 32, kRows = 32 };

struct F32 {
  typedef float T;
  enum { kWidth = 4 };
  static __device__ float wide(T value) { return value; }
  static __device__ T narrow(float value) { return value; }
};
struct F16 {
  typedef unsigned short T;
  enum { kWidth = 8 };
  static __device__ float wide(T bits) { return f16_value(bits); }
  static __device__ T narrow(float value) { return f16_bits(value); }
};
struct Bf16 {
  typedef unsigned short T;
  enum { kWidth = 8 };
  static __device__ float wide(T bits) { return bf16_value(bits); }
  static __device__ T narrow(float value) { return bf16_bits(value); }
};
template <class K>
struct __align__(16) Vector {
  typename K::T e[K::kWidth];
};

/// One thread's part of [pixels, channels].
template <class K>
struct Lane {
  long long vectors, vector;  // of a pixel; which of them
  long long first, step;      // pixels

  __device__ Lane(int channels)
      : vectors(channels / K::kWidth),
        vector(blockIdx.y * (long long)blockDim.x + threadIdx.x),
        first(blockIdx.x * (long long)blockDim.y + threadIdx.y),
        step(gridDim.x * (long long)blockDim.y) {}
  __device__ bool inside() const { return vector < vectors; }
  __device__ Vector<K> load(const typename K::T* data, long long pixel) const {
    return ((const Vector<K>*)data)[pixel * vectors + vector];
  }
  __device__ void store(typename K::T* data, long long pixel, const Vector<K>& value) const {
    ((Vector<K>*)data)[pixel * vectors + vector] = value;
  }
  /// Numbers of this thread's channels.
  __device__ void load_channels(const float* data, float* values) const {
    for (int e = 0; e < K::kWidth; ++e) {
      values[e] = data[vector * K::kWidth + e];
    }
  }
};

/// Writes the block's two sums for each of its channels: partial is [blocks, 2, channels].
template <class K>
__device__ void add_over_block(const Lane<K>& lane, const float* sums, int channels, float* partial) {
  enum { kSums = 2 * K::kWidth };
  __shared__ float shared[kSums * kThreads];
  const int place = threadIdx.y * blockDim.x + threadIdx.x;
  for (int i = 0; i < kSums; ++i) {
    shared[i * kThreads + place] = sums[i];
  }
  for (int rows = blockDim.y; rows > 1;) {
    const int half = (rows + 1) / 2;
    __syncthreads();
    if ((int)threadIdx.y < rows - half) {
      for (int i = 0; i < kSums; ++i) {
        shared[i * kThreads + place] += shared[i * kThreads + place + half * blockDim.x];
      }
    }
    rows = half;
  }
  if (threadIdx.y == 0 && lane.inside()) {
    for (int i = 0; i < kSums; ++i) {
      const long long kind = 2 * (long long)blockIdx.x + i / K::kWidth;
      partial[kind * channels + lane.vector * K::kWidth + i % K::kWidth] =
          shared[i * kThreads + place];
    }
  }
}

/// The sums over all blocks, in threads whose threadIdx.y is 0; threads are channels by blocks.
__device__ void add_over_blocks(const float* partial, int blocks, int channels, double* sums) {
  __shared__ double shared[2 * kColumns * kRows];
  const int channel = blockIdx.x * kColumns + threadIdx.x;
  const int place = threadIdx.y * kColumns + threadIdx.x;
  double first = 0, second = 0;
  for (int i = threadIdx.y; i < blocks && channel < channels; i += kRows) {
    first += partial[2LL * i * channels + channel];
    second += partial[(2LL * i + 1) * channels + channel];
  }
  shared[place] = first;
  shared[kColumns * kRows + place] = second;
  for (int rows = kRows / 2; rows > 0; rows /= 2) {
    __syncthreads();
    if ((int)threadIdx.y < rows) {
      shared[place] += shared[place + rows * kColumns];
      shared[kColumns * kRows + place] += shared[kColumns * kRows + place + rows * kColumns];
    }
  }
  sums[0] = shared[place];
  sums[1] = shared[kColumns * kRows + place];
}

/// Around the first pixel: sums of large numbers would lose the variance.
template <class K>
__device__ void moments(const typename K::T* x, long long pixels, int channels, float* partial) {
  const Lane<K> lane(channels);
  float sums[2 * K::kWidth] = {};
  if (lane.inside()) {
    const Vector<K> shift = lane.load(x, 0);
#pragma unroll 4
    for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
      const Vector<K> value = lane.load(x, pixel);
#pragma unroll
      for (int e = 0; e < K::kWidth; ++e) {
        const float d = K::wide(value.e[e]) - K::wide(shift.e[e]);
        sums[e] += d;
        sums[K::kWidth + e] = fmaf(d, d, sums[K::kWidth + e]);
      }
    }
  }
  add_over_block(lane, sums, channels, partial);
}

template <class K>
__device__ void statistics(const float* partial, int blocks, const typename K::T* x, long long pixels,
                           int channels, const float* weight, const float* bias, float* running_mean,
                           float* running_var, long long* tracked, double momentum, double epsilon,
                           float* out) {
  double sums[2];
  add_over_blocks(partial, blocks, channels, sums);
  const int c = blockIdx.x * kColumns + threadIdx.x;
  if (threadIdx.y != 0 || c >= channels) {
    return;
  }
  const double shifted = sums[0] / pixels;
  const double difference = sums[1] / pixels - shifted * shifted;
  const double variance = difference < 0 ? 0 : difference;  // NaN stays
  const double mean = shifted + K::wide(x[c]);
  const float inverse_std = (float)(1 / sqrt(variance + epsilon));
  const float scale = weight[c] * inverse_std;
  out[c] = (float)mean;
  out[channels + c] = inverse_std;
  out[2 * channels + c] = scale;
  out[3 * channels + c] = bias[c] - (float)mean * scale;
  if (running_mean != nullptr) {
    const double unbiased = variance * pixels / (pixels - 1);
    running_mean[c] = (float)((1 - momentum) * running_mean[c] + momentum * mean);
    running_var[c] = (float)((1 - momentum) * running_var[c] + momentum * unbiased);
    if (c == 0 && tracked != nullptr) {
      *tracked += 1;
    }
  }
}

/// Also what tells, without a residual, where relu lets something through.
__device__ inline float normed(float x, float scale, float offset) { return fmaf(x, scale, offset); }

template <class K, bool kResidual>
__device__ void norm_relu(const typename K::T* x, const typename K::T* residual, long long pixels,
                          int channels, const float* scales, const float* offsets, typename K::T* y) {
  const Lane<K> lane(channels);
  if (!lane.inside()) {
    return;
  }
  float scale[K::kWidth], offset[K::kWidth];
  lane.load_channels(scales, scale);
  lane.load_channels(offsets, offset);
#pragma unroll 4
  for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
    const Vector<K> value = lane.load(x, pixel);
    Vector<K> more, out;
    if (kResidual) {
      more = lane.load(residual, pixel);
    }
#pragma unroll
    for (int e = 0; e < K::kWidth; ++e) {
      float z = normed(K::wide(value.e[e]), scale[e], offset[e]);
      if (kResidual) {
        z += K::wide(more.e[e]);
      }
      out.e[e] = K::narrow(z <= 0 ? 0 : z);  // NaN passes
    }
    lane.store(y, pixel, out);
  }
}

/// Sums of g and of g (x - mean), where g is what relu lets through of dy, which is kept in `passed`
/// where there was a residual.
template <class K, bool kResidual>
__device__ void gradient_sums(const typename K::T* dy, const typename K::T* x, const typename K::T* y,
                              long long pixels, int channels, const float* of_channels,
                              typename K::T* passed, float* partial) {
  const Lane<K> lane(channels);
  float sums[2 * K::kWidth] = {};
  if (lane.inside()) {
    float mean[K::kWidth], scale[K::kWidth], offset[K::kWidth];
    lane.load_channels(of_channels, mean);
    lane.load_channels(of_channels + 2 * channels, scale);
    lane.load_channels(of_channels + 3 * channels, offset);
#pragma unroll 4
    for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
      const Vector<K> gradient = lane.load(dy, pixel);
      const Vector<K> value = lane.load(x, pixel);
      Vector<K> made, kept;
      if (kResidual) {
        made = lane.load(y, pixel);
      }
#pragma unroll
      for (int e = 0; e < K::kWidth; ++e) {
        const float image = K::wide(value.e[e]);
        const float z = kResidual ? K::wide(made.e[e]) : normed(image, scale[e], offset[e]);
        const float g = z <= 0 ? 0 : K::wide(gradient.e[e]);
        sums[e] += g;
        sums[K::kWidth + e] = fmaf(g, image - mean[e], sums[K::kWidth + e]);
        if (kResidual) {
          kept.e[e] = K::narrow(g);
        }
      }
      if (kResidual) {
        lane.store(passed, pixel, kept);
      }
    }
  }
  add_over_block(lane, sums, channels, partial);
}

/// out: the gradients of weight and bias, and for each channel dx = scale g + slope (x - mean) +
/// level: [4, channels].
__device__ void gradient_channels(const float* partial, int blocks, long long pixels, int channels,
                                  const float* of_channels, float* out) {
  double sums[2];
  add_over_blocks(partial, blocks, channels, sums);
  const int c = blockIdx.x * kColumns + threadIdx.x;
  if (threadIdx.y != 0 || c >= channels) {
    return;
  }
  const double inverse_std = of_channels[channels + c];
  const double scale = of_channels[2 * channels + c];
  out[c] = (float)(sums[1] * inverse_std);
  out[channels + c] = (float)sums[0];
  out[2 * channels + c] = (float)(-scale * inverse_std * inverse_std * sums[1] / pixels);
  out[3 * channels + c] = (float)(-scale * sums[0] / pixels);
}

/// `passed`: dy where nothing was kept.
template <class K, bool kResidual>
__device__ void image_gradient(const typename K::T* passed, const typename K::T* x, long long pixels,
                               int channels, const float* of_channels, const float* of_gradient,
                               typename K::T* dx) {
  const Lane<K> lane(channels);
  if (!lane.inside()) {
    return;
  }
  float mean[K::kWidth], scale[K::kWidth], offset[K::kWidth], slope[K::kWidth], level[K::kWidth];
  lane.load_channels(of_channels, mean);
  lane.load_channels(of_channels + 2 * channels, scale);
  lane.load_channels(of_channels + 3 * channels, offset);
  lane.load_channels(of_gradient + 2 * channels, slope);
  lane.load_channels(of_gradient + 3 * channels, level);
#pragma unroll 2
  for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
    const Vector<K> gradient = lane.load(passed, pixel);
    const Vector<K> value = lane.load(x, pixel);
    Vector<K> out;
#pragma unroll
    for (int e = 0; e < K::kWidth; ++e) {
      const float image = K::wide(value.e[e]);
      const bool stopped = !kResidual && normed(image, scale[e], offset[e]) <= 0;
      const float g = stopped ? 0 : K::wide(gradient.e[e]);
      out.e[e] = K::narrow(fmaf(scale[e], g, fmaf(slope[e], image - mean[e], level[e])));
    }
    lane.store(dx, pixel, out);
  }
}

#define KERNELS_OF(K, name)                                                                       \
  extern "C" __global__ void moments_##name(const K::T* x, long long pixels, int channels,        \
                                            float* partial) {                                     \
    moments<K>(x, pixels, channels, partial);                                                     \
  }                                                                                               \
  extern "C" __global__ void statistics_##name(                                                   \
      const float* partial, int blocks, const K::T* x, long long pixels, int channels,            \
      const float* weight, const float* bias, float* running_mean, float* running_var,            \
      long long* tracked, double momentum, double epsilon, float* out) {                          \
    statistics<K>(partial, blocks, x, pixels, channels, weight, bias, running_mean, running_var,  \
                  tracked, momentum, epsilon, out);                                               \
  }                                                                                               \
  extern "C" __global__ void norm_relu_##name(const K::T* x, const K::T* residual,                \
                                              long long pixels, int channels,                     \
                                              const float* of_channels, K::T* y) {                \
    const float* const scales = of_channels + 2 * channels;                                       \
    if (residual != nullptr) {                                                                    \
      norm_relu<K, true>(x, residual, pixels, channels, scales, scales + channels, y);            \
    } else {                                                                                      \
      norm_relu<K, false>(x, residual, pixels, channels, scales, scales + channels, y);           \
    }                                                                                             \
  }                                                                                               \
  extern "C" __global__ void gradient_sums_##name(const K::T* dy, const K::T* x, const K::T* y,   \
                                                  long long pixels, int channels,                 \
                                                  const float* of_channels, K::T* passed,         \
                                                  float* partial) {                               \
    if (y != nullptr) {                                                                           \
      gradient_sums<K, true>(dy, x, y, pixels, channels, of_channels, passed, partial);           \
    } else {                                                                                      \
      gradient_sums<K, false>(dy, x, y, pixels, channels, of_channels, passed, partial);          \
    }                                                                                             \
  }                                                                                               \
  extern "C" __global__ void gradient_channels_##name(const float* partial, int blocks,           \
                                                      long long pixels, int channels,             \
                                                      const float* of_channels, float* out) {     \
    gradient_channels(partial, blocks, pixels, channels, of_channels, out);                       \
  }                                                                                               \
  extern "C" __global__ void image_gradient_##name(                                               \
      const K::T* passed, const K::T* x, long long pixels, int channels,                          \
      const float* of_channels, const float* of_gradient, int was_kept, K::T* dx) {               \
    if (was_kept) {                                                                               \
      image_gradient<K, true>(passed, x, pixels, channels, of_channels, of_gradient, dx);         \
    } else {                                                                                      \
      image_gradient<K, false>(passed, x, pixels, channels, of_channels, of_gradient, dx);        \
    }                                                                                             \
  }
)";

}  // namespace

std::string norm_relu_source(at::ScalarType type) {
  return std::string(kKernels) + (type == at::kHalf       ? "KERNELS_OF(F16, f16)\n"
                                  : type == at::kBFloat16 ? "KERNELS_OF(Bf16, bf16)\n"
                                                          : "KERNELS_OF(F32, f32)\n");
}

}  // namespace argosy::vision::ops::device
