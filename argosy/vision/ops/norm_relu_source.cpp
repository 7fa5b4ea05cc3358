#include "argosy/vision/ops/norm_relu_source.h"

namespace argosy::vision::ops::device {
namespace {

// A block's threads are channels, in vectors of 16 bytes, by pixels; the y of a block in the grid
// says which channels. So a thread keeps its channels, and neighbours read neighbouring memory.
// Sums are made in one order, whatever runs first: over a thread's pixels, over the block's
// threads, over the blocks.
constexpr const char* kKinds = R"(
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
)";

// K is the images' kind of number.
constexpr const char* kKernels = R"(
typedef K::T T;
enum { kWidth = K::kWidth };
struct __align__(16) Vector {
  T e[kWidth];
};

/// One thread's part of [pixels, channels].
struct Lane {
  long long vectors, vector;  // of a pixel; which of them
  long long first, step;      // pixels

  __device__ Lane(int channels)
      : vectors(channels / kWidth),
        vector(blockIdx.y * (long long)blockDim.x + threadIdx.x),
        first(blockIdx.x * (long long)blockDim.y + threadIdx.y),
        step(gridDim.x * (long long)blockDim.y) {}
  __device__ bool inside() const { return vector < vectors; }
  __device__ Vector load(const T* data, long long pixel) const {
    return ((const Vector*)data)[pixel * vectors + vector];
  }
  __device__ void store(T* data, long long pixel, const Vector& value) const {
    ((Vector*)data)[pixel * vectors + vector] = value;
  }
  /// Numbers of this thread's channels.
  __device__ void load_channels(const float* data, float* values) const {
    for (int e = 0; e < kWidth; ++e) {
      values[e] = data[vector * kWidth + e];
    }
  }
};

/// What the norm is for a thread's channels; of [4, channels]: mean, 1 / std, scale, offset.
struct Norm {
  float mean[kWidth], scale[kWidth], offset[kWidth];

  __device__ Norm(const Lane& lane, const float* of_channels, int channels) {
    lane.load_channels(of_channels, mean);
    lane.load_channels(of_channels + 2 * channels, scale);
    lane.load_channels(of_channels + 3 * channels, offset);
  }
  /// Also what tells, without a residual, where relu lets something through.
  __device__ float of(float x, int e) const { return fmaf(x - mean[e], scale[e], offset[e]); }
};

/// Writes the block's two sums for each of its channels: partial is [blocks, 2, channels].
__device__ void add_over_block(const Lane& lane, const float* sums, int channels, float* partial) {
  enum { kSums = 2 * kWidth };
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
      const long long kind = 2 * (long long)blockIdx.x + i / kWidth;
      partial[kind * channels + lane.vector * kWidth + i % kWidth] = shared[i * kThreads + place];
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

/// Sums are taken around the median of three pixels: those of large numbers would lose the variance,
/// and so would those around one pixel that is far from all others.
__device__ float shift_of(const T* x, long long pixels, int channels, long long channel) {
  const float a = K::wide(x[pixels / 4 * channels + channel]);
  const float b = K::wide(x[pixels / 2 * channels + channel]);
  const float c = K::wide(x[pixels * 3 / 4 * channels + channel]);
  return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
}

extern "C" __global__ void moments(const T* x, long long pixels, int channels, float* partial) {
  const Lane lane(channels);
  float sums[2 * kWidth] = {};
  if (lane.inside()) {
    float shift[kWidth];
    for (int e = 0; e < kWidth; ++e) {
      shift[e] = shift_of(x, pixels, channels, lane.vector * kWidth + e);
    }
#pragma unroll 4
    for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
      const Vector value = lane.load(x, pixel);
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        const float d = K::wide(value.e[e]) - shift[e];
        sums[e] += d;
        sums[kWidth + e] = fmaf(d, d, sums[kWidth + e]);
      }
    }
  }
  add_over_block(lane, sums, channels, partial);
}

extern "C" __global__ void statistics(const float* partial, int blocks, const T* x,
                                      long long pixels, int channels, const float* weight,
                                      const float* bias, float* running_mean, float* running_var,
                                      long long* tracked, double momentum, double epsilon,
                                      float* of_channels) {
  double sums[2];
  add_over_blocks(partial, blocks, channels, sums);
  const int c = blockIdx.x * kColumns + threadIdx.x;
  if (threadIdx.y != 0 || c >= channels) {
    return;
  }
  const double shifted = sums[0] / pixels;
  const double difference = sums[1] / pixels - shifted * shifted;
  const double variance = difference < 0 ? 0 : difference;  // NaN stays
  const double mean = shifted + shift_of(x, pixels, channels, c);
  const float inverse_std = (float)(1 / sqrt(variance + epsilon));
  of_channels[c] = (float)mean;
  of_channels[channels + c] = inverse_std;
  of_channels[2 * channels + c] = weight[c] * inverse_std;
  of_channels[3 * channels + c] = bias[c];
  if (running_mean != nullptr) {
    const double unbiased = variance * pixels / (pixels - 1);
    running_mean[c] = (float)((1 - momentum) * running_mean[c] + momentum * mean);
    running_var[c] = (float)((1 - momentum) * running_var[c] + momentum * unbiased);
    if (c == 0 && tracked != nullptr) {
      *tracked += 1;
    }
  }
}

template <bool kResidual>
__device__ void norm_relu_of(const T* x, const T* residual, long long pixels, int channels,
                             const float* of_channels, T* y) {
  const Lane lane(channels);
  if (!lane.inside()) {
    return;
  }
  const Norm norm(lane, of_channels, channels);
#pragma unroll 4
  for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
    const Vector value = lane.load(x, pixel);
    Vector more, out;
    if (kResidual) {
      more = lane.load(residual, pixel);
    }
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      float z = norm.of(K::wide(value.e[e]), e);
      if (kResidual) {
        z += K::wide(more.e[e]);
      }
      out.e[e] = K::narrow(z <= 0 ? 0 : z);  // NaN passes
    }
    lane.store(y, pixel, out);
  }
}

/// `residual`: null for none.
extern "C" __global__ void norm_relu(const T* x, const T* residual, long long pixels, int channels,
                                     const float* of_channels, T* y) {
  if (residual != nullptr) {
    norm_relu_of<true>(x, residual, pixels, channels, of_channels, y);
  } else {
    norm_relu_of<false>(x, residual, pixels, channels, of_channels, y);
  }
}

template <bool kResidual>
__device__ void gradient_sums_of(const T* dy, const T* x, const T* y, long long pixels, int channels,
                                 const float* of_channels, T* passed, float* partial) {
  const Lane lane(channels);
  float sums[2 * kWidth] = {};
  if (lane.inside()) {
    const Norm norm(lane, of_channels, channels);
#pragma unroll 4
    for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
      const Vector gradient = lane.load(dy, pixel);
      const Vector value = lane.load(x, pixel);
      Vector made, kept;
      if (kResidual) {
        made = lane.load(y, pixel);
      }
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        const float image = K::wide(value.e[e]);
        const float z = kResidual ? K::wide(made.e[e]) : norm.of(image, e);
        const float g = z <= 0 ? 0 : K::wide(gradient.e[e]);
        sums[e] += g;
        sums[kWidth + e] = fmaf(g, image - norm.mean[e], sums[kWidth + e]);
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

/// Sums of g and of g (x - mean), where g is what relu lets through of dy. `y`: null without a
/// residual; with one g is kept in `passed`.
extern "C" __global__ void gradient_sums(const T* dy, const T* x, const T* y, long long pixels,
                                         int channels, const float* of_channels, T* passed,
                                         float* partial) {
  if (y != nullptr) {
    gradient_sums_of<true>(dy, x, y, pixels, channels, of_channels, passed, partial);
  } else {
    gradient_sums_of<false>(dy, x, y, pixels, channels, of_channels, passed, partial);
  }
}

/// of_gradient: the gradients of weight and bias, and for each channel dx = scale g + slope
/// (x - mean) + level: [4, channels].
extern "C" __global__ void gradient_channels(const float* partial, int blocks, long long pixels,
                                             int channels, const float* of_channels,
                                             float* of_gradient) {
  double sums[2];
  add_over_blocks(partial, blocks, channels, sums);
  const int c = blockIdx.x * kColumns + threadIdx.x;
  if (threadIdx.y != 0 || c >= channels) {
    return;
  }
  const double inverse_std = of_channels[channels + c];
  const double scale = of_channels[2 * channels + c];
  of_gradient[c] = (float)(sums[1] * inverse_std);
  of_gradient[channels + c] = (float)sums[0];
  of_gradient[2 * channels + c] =
      (float)(-scale * inverse_std * inverse_std * sums[1] / pixels);
  of_gradient[3 * channels + c] = (float)(-scale * sums[0] / pixels);
}

template <bool kResidual>
__device__ void image_gradient_of(const T* passed, const T* x, long long pixels, int channels,
                                  const float* of_channels, const float* of_gradient, T* dx) {
  const Lane lane(channels);
  if (!lane.inside()) {
    return;
  }
  const Norm norm(lane, of_channels, channels);
  float slope[kWidth], level[kWidth];
  lane.load_channels(of_gradient + 2 * channels, slope);
  lane.load_channels(of_gradient + 3 * channels, level);
#pragma unroll 2
  for (long long pixel = lane.first; pixel < pixels; pixel += lane.step) {
    const Vector gradient = lane.load(passed, pixel);
    const Vector value = lane.load(x, pixel);
    Vector out;
#pragma unroll
    for (int e = 0; e < kWidth; ++e) {
      const float image = K::wide(value.e[e]);
      const bool stopped = !kResidual && norm.of(image, e) <= 0;
      const float g = stopped ? 0 : K::wide(gradient.e[e]);
      out.e[e] = K::narrow(
          fmaf(norm.scale[e], g, fmaf(slope[e], image - norm.mean[e], level[e])));
    }
    lane.store(dx, pixel, out);
  }
}

/// `passed`: dy unless it `was_kept`.
extern "C" __global__ void image_gradient(const T* passed, const T* x, long long pixels,
                                          int channels, const float* of_channels,
                                          const float* of_gradient, int was_kept, T* dx) {
  if (was_kept) {
    image_gradient_of<true>(passed, x, pixels, channels, of_channels, of_gradient, dx);
  } else {
    image_gradient_of<false>(passed, x, pixels, channels, of_channels, of_gradient, dx);
  }
}
)";

}  // namespace

std::string norm_relu_source(at::ScalarType type) {
  const std::string kind = type == at::kHalf ? "F16" : type == at::kBFloat16 ? "Bf16" : "F32";
  return kKinds + ("typedef " + kind + " K;") + kKernels;
}

}  // namespace argosy::vision::ops::device
