#include "argosy/vision/datasets/plain_pictures.h"

#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"

namespace argosy::vision {
namespace {

/// One for each channel.
std::vector<double> for_channels(const std::vector<double>& given, double unset, int channels) {
  ARGOSY_CHECK(given.size() <= 1 || std::ssize(given) == channels,
               "vision.pictures",
               "options mean and std: expected 1 or {} numbers, got {}",
               channels,
               given.size());
  return given.size() <= 1
             ? std::vector<double>(static_cast<size_t>(channels), given.empty() ? unset : given[0])
             : given;
}

}  // namespace

PlainPictures::PlainPictures(const PictureOptions& options,
                             image::Order order,
                             const datasets::About& about)
    : order_(order) {
  ARGOSY_CHECK(
      options.transform.runner() == nullptr || (options.mean.empty() && options.std.empty()),
      "vision.pictures",
      "options mean and std are for pictures without a transform: put Normalize into it");
  const int channels = image::channels_of(order);
  const std::vector<double> means = for_channels(options.mean, 0, channels);
  const std::vector<double> deviations = for_channels(options.std, 1, channels);
  for (size_t c = 0; c < means.size(); ++c) {
    ARGOSY_CHECK(
        std::isfinite(means[c]), "vision.pictures", "mean must be finite, got {}", means[c]);
    ARGOSY_CHECK(std::isfinite(deviations[c]) && deviations[c] > 0,
                 "vision.pictures",
                 "std must be positive and finite, got {}",
                 deviations[c]);
    Table& table = tables_.emplace_back();
    for (size_t i = 0; i < table.size(); ++i) {
      table[i] =
          (static_cast<float>(i) / static_cast<float>(about.full) - static_cast<float>(means[c])) /
          static_cast<float>(deviations[c]);
    }
  }
}

void PlainPictures::write(const uint8_t* pixels,
                          image::Size size,
                          const PictureTarget& target) const {
  const auto channels = std::ssize(tables_);
  const int64_t step = channels > 1 && target.channel_stride == 1 ? channels : 1;
  for (int64_t c = 0; c < channels; ++c) {
    const Table& table = tables_[static_cast<size_t>(c)];
    for (int64_t y = 0; y < size.height; ++y) {
      const uint8_t* from = pixels + y * size.width * channels + c;
      float* to = target.first + c * target.channel_stride + y * target.row_stride;
      for (int64_t x = 0; x < size.width; ++x) {
        to[x * step] = table[from[x * channels]];
      }
    }
  }
}

at::Tensor PlainPictures::tensor_of(const image::Image& picture) const {
  const int64_t plane = int64_t{picture.height()} * picture.width();
  at::Tensor chw = at::empty({picture.channels(), picture.height(), picture.width()}, at::kFloat);
  write(picture.row<uint8_t>(0),
        picture.size(),
        {.first = chw.data_ptr<float>(),
         .channel_stride = picture.channels() == 1 ? 1 : plane,
         .row_stride = picture.width()});
  return chw;
}

class PlainPictures::OfOneSize final : public OnePass {
 public:
  OfOneSize(PlainPictures plain, image::Size size) : plain_(std::move(plain)), size_(size) {}

  [[nodiscard]] std::vector<int64_t> sizes() const override {
    return {image::channels_of(plain_.order_), size_.height, size_.width};
  }
  [[nodiscard]] bool keeps_places(image::Size) const override { return true; }
  void write(const datasets::Source& source,
             const datasets::Sample& sample,
             data::Random&,
             const PictureTarget& target) const override {
    if (sample.picture.channels == image::channels_of(plain_.order_)) {
      plain_.write(sample.picture.bytes.data(), size_, target);
      return;
    }
    const image::Image picture = source.decoded(sample, {.order = plain_.order_});
    plain_.write(picture.row<uint8_t>(0), size_, target);
  }

 private:
  PlainPictures plain_;
  image::Size size_;
};

std::unique_ptr<const OnePass> PlainPictures::of_one_size(image::Size size) const {
  return std::make_unique<const OfOneSize>(*this, size);
}

}  // namespace argosy::vision
