#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::datasets {

struct MnistJsonOptions {
  int64_t pixels = 784;  ///< numbers of an image
  int64_t classes = 10;  ///< labels are 0 to classes - 1; at most 256
  /// Which splits are wanted: the others are passed over, several times as fast, and stay empty.
  bool train = true;
  bool valid = true;
  bool test = true;
  /// Most (unpacked) text: what a gzip bomb runs into. The full MNIST has 0.34 GB.
  int64_t most_bytes = int64_t{2} << 30;
};

/// N images and their labels.
struct MnistJsonSplit {
  std::vector<float> values{};    ///< N × pixels
  std::vector<uint8_t> labels{};  ///< N
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

struct MnistJson {
  MnistJsonSplit train{};
  MnistJsonSplit valid{};
  MnistJsonSplit test{};
};

/// Reads MNIST as Paddle's tutorials have it: one JSON list, plain or gzip, of three splits, each
/// a list of images (lists of 784 numbers) and a list of as many labels.
///
///     MnistJson digits = read_mnist_json("mnist.json.gz");  // digits.train.values …
///
/// Errors: DataError with path, offset (in the unpacked text), image and the place in words
/// ("valid, image 17: expected 784 numbers, got 783"): not this structure, a split that is missing
/// or too many, a number that is none or too large for f32, a label outside the classes, numbers
/// of images and labels that differ; and formats::FileReader's.
/// Cost: one image's text at a time; no document is built. The full MNIST takes about 1 s.
[[nodiscard]] MnistJson read_mnist_json(const std::string& path,
                                        const MnistJsonOptions& options = {});

}  // namespace argosy::datasets
