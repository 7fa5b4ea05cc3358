// Microseconds of a picture's way from the decoder's size to the model's, one core.
//   image_resize_bench --benchmark_filter=Rgb
// Beside it in the same minute: tests/golden/images/time_pillow.py
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "argosy/image/resize.h"

namespace argosy::image {
namespace {

Image noise(Size size, Order order, Type type = Type::kU8) {
  Image image(size, order, type);
  uint32_t state = 1;
  for (int y = 0; y < size.height; ++y) {
    for (int i = 0; i < size.width * image.channels(); ++i) {
      state = state * 1664525 + 1013904223;
      const uint32_t value = state >> 24;
      if (type == Type::kU8) {
        image.row<uint8_t>(y)[i] = static_cast<uint8_t>(value);
      } else {
        image.row<float>(y)[i] = static_cast<float>(value);
      }
    }
  }
  return image;
}

void run(benchmark::State& state, const Image& image, Size target, const ResizeOptions& options) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(resize(image, target, options).data());
  }
}

void BM_Rgb(benchmark::State& state, Interpolation interpolation, Antialias antialias) {
  const auto side = static_cast<int>(state.range(0));
  run(state, noise({side, side}, Order::kRgb), {224, 224}, {interpolation, antialias});
}
BENCHMARK_CAPTURE(BM_Rgb, bilinear, Interpolation::kBilinear, Antialias::kOn)
    ->Arg(128)
    ->Arg(224)
    ->Arg(300)
    ->Arg(380)
    ->Arg(500)
    ->Arg(1000)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Rgb, bilinear_plain, Interpolation::kBilinear, Antialias::kOff)
    ->Arg(380)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Rgb, nearest, Interpolation::kNearest, Antialias::kOn)
    ->Arg(380)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Rgb, bicubic, Interpolation::kBicubic, Antialias::kOn)
    ->Arg(380)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Rgb, lanczos, Interpolation::kLanczos, Antialias::kOn)
    ->Arg(380)
    ->Unit(benchmark::kMicrosecond);

void BM_Gray(benchmark::State& state) {
  run(state, noise({380, 380}, Order::kGray), {224, 224}, {});
}
BENCHMARK(BM_Gray)->Unit(benchmark::kMicrosecond);

void BM_F32(benchmark::State& state) {
  run(state, noise({380, 380}, Order::kRgb, Type::kF32), {224, 224}, {});
}
BENCHMARK(BM_F32)->Unit(benchmark::kMicrosecond);

/// As the pipeline does it: memory kept, a row at a time into the same place.
void BM_Rows(benchmark::State& state) {
  const Image image = noise({380, 380}, Order::kRgb);
  std::vector<uint8_t> row(224 * 3);
  Resampler resampler;
  for (auto _ : state) {
    resampler.plan(image.size(), {0, 0, 380, 380}, {224, 224}, 3, {.flip = Flip::kHorizontal});
    resampler.start(image.row<uint8_t>(0), image.row_bytes());
    for (int y = 0; y < 224; ++y) {
      resampler.next(row.data());
      benchmark::ClobberMemory();
    }
  }
}
BENCHMARK(BM_Rows)->Unit(benchmark::kMicrosecond);

/// Only the weights.
void BM_Plan(benchmark::State& state) {
  Resampler resampler;
  for (auto _ : state) {
    resampler.plan({380, 380}, {0, 0, 380, 380}, {224, 224}, 3, {});
  }
}
BENCHMARK(BM_Plan)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace argosy::image
