// The ways from a JPEG to the pixels of a random box, as RandomResizedCrop(224) draws them: area 8
// to 100 %, ratio 3/4 to 4/3. ARGOSY_BENCH_JPEGS names a folder; else the three flowers of
// tests/data.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "argosy/image/codec.h"
#include "argosy/image/jpeg_region.h"

namespace argosy::image {
namespace {

constexpr Size kWanted{224, 224};

struct Sample {
  std::vector<uint8_t> bytes;
  Size size;
  Box box;
};

Box random_box(Size size, std::mt19937& random) {
  std::uniform_real_distribution<double> scale(0.08, 1);
  std::uniform_real_distribution<double> log_ratio(std::log(0.75), std::log(4.0 / 3));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = scale(random) * size.height * size.width;
    const double ratio = std::exp(log_ratio(random));
    const int width = static_cast<int>(std::lround(std::sqrt(area * ratio)));
    const int height = static_cast<int>(std::lround(std::sqrt(area / ratio)));
    if (width > 0 && height > 0 && width <= size.width && height <= size.height) {
      return {std::uniform_int_distribution<int>(0, size.height - height)(random),
              std::uniform_int_distribution<int>(0, size.width - width)(random),
              height,
              width};
    }
  }
  const int side = std::min(size.height, size.width);
  return {(size.height - side) / 2, (size.width - side) / 2, side, side};
}

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = [] {
    const char* folder = std::getenv("ARGOSY_BENCH_JPEGS");
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(
             folder != nullptr ? folder : ARGOSY_TEST_DATA "/images")) {
      const std::string name = entry.path().filename().string();
      if (folder != nullptr || name.rfind("flower_", 0) == 0) {
        paths.push_back(entry.path().string());
      }
    }
    std::sort(paths.begin(), paths.end());
    std::mt19937 random(1);
    std::vector<Sample> found;
    for (const std::string& path : paths) {
      Sample sample{read_file(path), {}, {}};
      sample.size = probe(sample.bytes).size;
      sample.box = random_box(sample.size, random);
      found.push_back(std::move(sample));
    }
    return found;
  }();
  return all;
}

enum class What { kWhole, kBox };

void run(benchmark::State& state, What what, const JpegRegionOptions& options) {
  JpegRegionDecoder decoder(options);
  size_t i = 0;
  int64_t failed = 0;
  for (auto _ : state) {
    const Sample& sample = samples()[i++ % samples().size()];
    try {
      decoder.open(sample.bytes);
      const Box whole{0, 0, sample.size.height, sample.size.width};
      benchmark::DoNotOptimize(decoder.decode(what == What::kWhole ? whole : sample.box, kWanted));
    } catch (const std::exception&) {
      ++failed;
    }
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["failed"] = static_cast<double>(failed);
}

constexpr Entropy kTheirs = Entropy::kLibjpeg;
#define ARGOSY_ROAD(name, what, ...) \
  BENCHMARK_CAPTURE(run, name, What::what, JpegRegionOptions{__VA_ARGS__})

ARGOSY_ROAD(whole_libjpeg, kWhole, .largest_reduction = 1, .entropy = kTheirs);
ARGOSY_ROAD(whole, kWhole, .largest_reduction = 1);
ARGOSY_ROAD(box_libjpeg, kBox, .largest_reduction = 1, .entropy = kTheirs);
ARGOSY_ROAD(box_libjpeg_reduced, kBox, .entropy = kTheirs);
ARGOSY_ROAD(box, kBox, .largest_reduction = 1);
ARGOSY_ROAD(box_reduced, kBox);
ARGOSY_ROAD(box_reduced_gap_1_5, kBox, .gap = 1.5);

}  // namespace
}  // namespace argosy::image
