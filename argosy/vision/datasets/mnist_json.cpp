#include "argosy/vision/datasets/mnist_json.h"

#include <memory>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "argosy/base/check.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/mnist_json.h"

namespace argosy::vision {
namespace {

constexpr int64_t kMnistJsonSide = 28;

datasets::MnistJsonSplit read(const std::string& path, Split split) {
  datasets::MnistJson all =
      datasets::read_mnist_json(datasets::file_or_in_folder(path, {"mnist.json.gz", "mnist.json"}),
                                {.train = split == Split::kTrain,
                                 .valid = split == Split::kValid,
                                 .test = split == Split::kTest});
  return split == Split::kTrain   ? std::move(all.train)
         : split == Split::kValid ? std::move(all.valid)
                                  : std::move(all.test);
}

/// The split's own memory as a tensor [N, 1, 28, 28].
at::Tensor images_of(datasets::MnistJsonSplit& split) {
  const int64_t count = split.size();
  auto owner = std::make_shared<std::vector<float>>(std::move(split.values));
  return at::from_blob(
      owner->data(),
      {count, 1, kMnistJsonSide, kMnistJsonSide},
      [owner](void*) {},
      at::TensorOptions(at::kFloat));
}

at::Tensor labels_of(const datasets::MnistJsonSplit& split) {
  at::Tensor labels = at::empty({split.size()}, at::kLong);
  std::copy(split.labels.begin(), split.labels.end(), labels.data_ptr<int64_t>());
  return labels;
}

data::TensorDataset<2> set_of(datasets::MnistJsonSplit split) {
  const at::Tensor labels = labels_of(split);
  return data::TensorDataset<2>(images_of(split), labels);
}

}  // namespace

MnistJson::MnistJson(const std::string& path, Split split) : set_(set_of(read(path, split))) {}

std::tuple<at::Tensor, at::Tensor> MnistJson::get(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               "vision.MnistJson",
               "index {} is outside the data set of {} samples",
               index,
               size());
  auto [image, label] = set_.get(index);
  return {std::move(image), std::move(label)};
}

}  // namespace argosy::vision
