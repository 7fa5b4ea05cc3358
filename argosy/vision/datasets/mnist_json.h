#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <tuple>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/data/tensor_dataset.h"
#include "argosy/vision/split.h"

namespace argosy::vision {

/// MNIST as Paddle's tutorials have it: mnist.json.gz, one JSON list of three splits, each a list
/// of images (784 numbers, 0 to 1) and a list of labels.
///
///     vision::MnistJson train("mnist.json.gz", vision::Split::kTrain);
///     auto [image, label] = train.get(0);                      // f32 [1, 28, 28], i64
///
/// `path`: the file, plain or gzip, or its folder. Numbers stay as they are. The wanted split is
/// read at construction and stays in memory (157 MB for 50,000). A data::Dataset with the fast
/// path. Errors: DataError with path, offset and the place in words: see
/// datasets::read_mnist_json().
class MnistJson final {
 public:
  MnistJson(const std::string& path, Split split);

  [[nodiscard]] int64_t size() const { return set_.size(); }
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get(int64_t index) const;
  /// Images f32 [n, 1, 28, 28] and labels i64 [n].
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const {
    return set_.get_batch(indices, context);
  }

  [[nodiscard]] const at::Tensor& images() const { return set_.tensors()[0]; }
  [[nodiscard]] const at::Tensor& labels() const { return set_.tensors()[1]; }

 private:
  data::TensorDataset<2> set_;
};

}  // namespace argosy::vision
