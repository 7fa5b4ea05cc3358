#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/mnist_json.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sources.h"

namespace argosy::datasets {
namespace {

constexpr int64_t kSide = 28;

/// The file's numbers are greys of 8 bits divided by 255 or 256: are they all whole when multiplied
/// by that again?
bool are_greys(const std::vector<float>& values, double most) {
  for (const float value : values) {
    const double grey = value * most;
    if (!(grey >= 0 && grey < 255.5 && std::abs(grey - std::round(grey)) < 1e-3)) {
      return false;
    }
  }
  return true;
}

PixelBlock block_of(const char* split, const MnistJsonSplit& samples, double most) {
  PixelBlock block{.split = split, .count = samples.size()};
  block.pixels.reserve(samples.values.size());
  for (const float value : samples.values) {
    block.pixels.push_back(static_cast<uint8_t>(std::lround(value * most)));
  }
  block.labels.assign(samples.labels.begin(), samples.labels.end());
  return block;
}

}  // namespace

std::unique_ptr<SampleSource> open_mnist_json(const std::string& path) {
  const std::string file = file_or_in_folder(path, {"mnist.json.gz", "mnist.json"});
  const MnistJson json = read_mnist_json(file);
  const auto all = [&](double most) {
    return are_greys(json.train.values, most) && are_greys(json.valid.values, most) &&
           are_greys(json.test.values, most);
  };
  const double most = all(256) ? 256 : 255;
  if (most == 255 && !all(255)) {
    throw DataError("datasets.mnist_json",
                    "has numbers that are no greys of 8 bits divided by 255 or 256",
                    {file});
  }
  std::vector<PixelBlock> blocks;
  blocks.push_back(block_of("train", json.train, most));
  blocks.push_back(block_of("valid", json.valid, most));
  blocks.push_back(block_of("test", json.test, most));
  return std::make_unique<PixelSource>(
      Description{.set = "mnist_json",
                  .path = file,
                  .classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
                  .value_scale = 1 / most},
      Shape{.height = kSide, .width = kSide, .channels = 1},
      std::move(blocks));
}

}  // namespace argosy::datasets
