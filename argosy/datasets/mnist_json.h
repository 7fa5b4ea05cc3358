#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::datasets {

struct MnistJsonOptions {
  int64_t pixels = 784;  ///< numbers of an image
  int64_t classes = 10;  ///< labels are 0 to classes - 1; at most 256
  /// The splits to read. The others are skipped, several times as fast, and stay empty.
  bool train = true;
  bool valid = true;
  bool test = true;
  /// Most text, unpacked. It stops a gzip bomb. The full MNIST has 0.34 GB.
  int64_t most_bytes = int64_t{2} << 30;
};

/// N images and their labels.
struct MnistJsonSplit {
  std::vector<float> values{};    ///< N × pixels
  std::vector<uint8_t> labels{};  ///< N
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(labels.size()); }
};

struct MnistJsonSplits {
  MnistJsonSplit train{};
  MnistJsonSplit valid{};
  MnistJsonSplit test{};
};

/// Reads MNIST in the form of Paddle's tutorials, plain or gzip: a JSON list of three splits. Each
/// split is a list of images (lists of 784 numbers) and a list of as many labels.
///
///     MnistJsonSplits digits = read_mnist_json("mnist.json.gz");  // digits.train.values …
///
/// Errors: DataError with path, offset (in the unpacked text), image and the place in words
/// ("valid, image 17: expected 784 numbers, got 783"): not this structure, too few or too many
/// splits, a number that is malformed or too large for f32, a label outside the classes, or
/// different numbers of images and labels. Also the errors of formats::FileReader.
/// Cost: it holds one image's text at a time and builds no document. The full MNIST takes about 1
/// s.
[[nodiscard]] MnistJsonSplits read_mnist_json(const std::string& path,
                                              const MnistJsonOptions& options = {});

}  // namespace argosy::datasets
