#include "argosy/vision/datasets/mnist.h"

#include <array>
#include <cmath>
#include <exception>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/data/collate.h"
#include "argosy/vision/datasets/mnist_files.h"

namespace argosy::vision {
namespace {

constexpr int64_t kPixels = int64_t{28} * 28;

constexpr std::array<std::string_view, 10> kFashionClasses = {"T-shirt/top",
                                                              "Trouser",
                                                              "Pullover",
                                                              "Dress",
                                                              "Coat",
                                                              "Sandal",
                                                              "Shirt",
                                                              "Sneaker",
                                                              "Bag",
                                                              "Ankle boot"};
constexpr std::array<std::string_view, 10> kDigitClasses = {"0 - zero",
                                                            "1 - one",
                                                            "2 - two",
                                                            "3 - three",
                                                            "4 - four",
                                                            "5 - five",
                                                            "6 - six",
                                                            "7 - seven",
                                                            "8 - eight",
                                                            "9 - nine"};

constexpr detail::MnistFlavour kFashion = {
    .where = "vision.FashionMnist",
    .subfolder = "FashionMNIST/raw",
    .advice =
        "Debian's package brings them: apt-get install dataset-fashion-mnist (into "
        "/usr/share/datasets/fashion-mnist)",
    .classes = kFashionClasses.data()};
constexpr detail::MnistFlavour kDigits = {
    .where = "vision.Mnist",
    .subfolder = "MNIST/raw",
    .advice =
        "To bring them: argosy data fetch mnist --to FOLDER; or apt-get install "
        "dataset-fashion-mnist for Fashion-MNIST in the same format",
    .classes = kDigitClasses.data()};

/// The 256 values that a pixel can become: one load a pixel, and exactly the bits of
/// images.to(f32).div(255).sub(mean).div(std).
std::array<float, 256> pixel_values(const MnistOptions& options) {
  std::array<float, 256> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<float>(i) / 255.0F - static_cast<float>(options.mean)) /
                static_cast<float>(options.std);
  }
  return values;
}

}  // namespace

struct MnistImages::State {
  detail::MnistArrays arrays;
  MnistOptions options;
  const detail::MnistFlavour* flavour;
  std::array<float, 256> values;
};

MnistImages::MnistImages(const std::string& folder,
                         Split split,
                         MnistOptions options,
                         const detail::MnistFlavour& flavour) {
  ARGOSY_CHECK(std::isfinite(options.mean),
               flavour.where,
               "option mean must be finite, got {}",
               options.mean);
  ARGOSY_CHECK(std::isfinite(options.std) && options.std > 0,
               flavour.where,
               "option std must be positive and finite, got {}",
               options.std);
  const std::array<float, 256> values = pixel_values(options);
  state_ = std::make_shared<State>(State{.arrays = detail::read_mnist(folder, split, flavour),
                                         .options = std::move(options),
                                         .flavour = &flavour,
                                         .values = values});
}

int64_t MnistImages::size() const {
  return state_->arrays.labels.size(0);
}

void MnistImages::check_index(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               state_->flavour->where,
               "index {} is outside the data set of {} samples",
               index,
               size());
}

void MnistImages::write_image(int64_t index, float* out) const {
  const uint8_t* pixels = state_->arrays.images.data_ptr<uint8_t>() + index * kPixels;
  for (int64_t i = 0; i < kPixels; ++i) {
    out[i] = state_->values[pixels[i]];
  }
}

LabelledImage MnistImages::get(int64_t index, data::Random& random) const {
  check_index(index);
  at::Tensor image = at::empty({1, 28, 28}, at::kFloat);
  write_image(index, image.data_ptr<float>());
  if (state_->options.transform) {
    image = state_->options.transform(image, random);
  }
  return {.image = std::move(image), .label = state_->arrays.labels.select(0, index).clone()};
}

LabelledImage MnistImages::get(int64_t index) const {
  ARGOSY_CHECK(!state_->options.transform,
               state_->flavour->where,
               "a data set with a transform needs a random stream: get(index, random)");
  data::Random unused(0, 0, index);
  return get(index, unused);
}

std::tuple<at::Tensor, at::Tensor> MnistImages::get_batch(std::span<const int64_t> indices,
                                                          const data::BatchContext& context) const {
  const auto n = static_cast<int64_t>(indices.size());
  const auto* label = state_->arrays.labels.data_ptr<int64_t>();
  at::Tensor labels = context.empty({n}, at::kLong);
  auto* label_out = labels.data_ptr<int64_t>();
  for (const int64_t index : indices) {
    check_index(index);
    *label_out++ = label[index];
  }
  if (state_->options.transform) {
    return {transformed_batch(indices, context), std::move(labels)};
  }
  at::Tensor images = context.empty({n, 1, 28, 28}, at::kFloat);
  auto* image_out = images.data_ptr<float>();
  for (const int64_t index : indices) {
    write_image(index, image_out);
    image_out += kPixels;
  }
  return {std::move(images), std::move(labels)};
}

at::Tensor MnistImages::transformed_batch(std::span<const int64_t> indices,
                                          const data::BatchContext& context) const {
  std::vector<at::Tensor> images;
  images.reserve(indices.size());
  for (const int64_t index : indices) {
    data::Random random = context.random(index);
    try {
      images.push_back(get(index, random).image);
    } catch (const DataError&) {
      throw;
    } catch (const std::exception& error) {
      throw DataError(state_->flavour->where,
                      fmt::format("the transform threw: {}", error.what()),
                      {.path = "", .offset = -1, .index = index});
    }
  }
  return data::stack(images, context);
}

const at::Tensor& MnistImages::images() const {
  return state_->arrays.images;
}
const at::Tensor& MnistImages::labels() const {
  return state_->arrays.labels;
}
std::span<const std::string_view> MnistImages::classes() const {
  return {state_->flavour->classes, 10};
}

FashionMnist::FashionMnist(const std::string& folder, Split split, MnistOptions options)
    : MnistImages(folder, split, std::move(options), kFashion) {}

Mnist::Mnist(const std::string& folder, Split split, MnistOptions options)
    : MnistImages(folder, split, std::move(options), kDigits) {}

}  // namespace argosy::vision
