#include "argosy/vision/transforms/tensor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/vision/transforms/description.h"

namespace argosy::vision {
namespace {

using Floats = std::array<float, 256>;  // what each u8 value becomes

/// Values `stride` apart to values `to_stride` apart.
struct Line {
  int64_t count;
  int64_t stride;
  int64_t to_stride;
};

void convert(const uint8_t* from, float* to, const Line& line, const Floats& table) {
  for (int64_t i = 0; i < line.count; ++i) {
    to[i * line.to_stride] = table[from[i * line.stride]];
  }
}

const Floats& unit_values() {
  static const Floats values = [] {
    Floats made{};
    for (size_t i = 0; i < made.size(); ++i) {
      made[i] = static_cast<float>(i) / 255.0F;
    }
    return made;
  }();
  return values;
}

Floats normalized_values(float mean, float std, image::Scale scale) {
  Floats values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(i);
    values[i] = ((scale == image::Scale::kUnit ? value / 255.0F : value) - mean) / std;
  }
  return values;
}

/// Channel c of f32, and of u8 by a table of its 256 values, which has the same bits.
void normalize(const float* from,
               float* to,
               const Line& line,
               const Normalize::Constants& all,
               int64_t c,
               image::Scale /*scale*/) {
  const float mean = all.mean[static_cast<size_t>(c)];
  const float std = all.std[static_cast<size_t>(c)];
  for (int64_t i = 0; i < line.count; ++i) {
    to[i * line.to_stride] = (from[i * line.stride] - mean) / std;
  }
}

void normalize(const uint8_t* from,
               float* to,
               const Line& line,
               const Normalize::Constants& all,
               int64_t c,
               image::Scale scale) {
  const auto channel = static_cast<size_t>(c);
  convert(from, to, line, normalized_values(all.mean[channel], all.std[channel], scale));
}

/// A tensor that the kernels can read: u8 or f32, dense, on the CPU, channels known.
at::Tensor readable(const Picture& picture, std::string_view where) {
  const at::Tensor& chw = picture.tensor().chw;
  ARGOSY_CHECK(picture.order().has_value() && chw.is_cpu() &&
                   (chw.scalar_type() == at::kByte || chw.scalar_type() == at::kFloat),
               where,
               "expected an image or a CHW tensor of u8 or f32 on the CPU, got {}",
               picture.describe());
  return chw.contiguous();
}

at::Tensor unit_tensor(const image::Image& image) {
  const int64_t planes = image.channels();
  const Line line{
      .count = int64_t{image.height()} * image.width(), .stride = planes, .to_stride = 1};
  at::Tensor out = at::empty({planes, image.height(), image.width()}, at::kFloat);
  for (int64_t c = 0; c < planes; ++c) {
    convert(image.row<uint8_t>(0) + c, out.data_ptr<float>() + c * line.count, line, unit_values());
  }
  return out;
}

at::Tensor unit_tensor(const at::Tensor& chw) {
  at::Tensor out = at::empty(chw.sizes(), at::kFloat);
  convert(chw.data_ptr<uint8_t>(),
          out.data_ptr<float>(),
          {.count = chw.numel(), .stride = 1, .to_stride = 1},
          unit_values());
  return out;
}

}  // namespace

Picture ToTensor::operator()(Picture picture) const {
  const std::optional<image::Order> order = picture.order();
  if (picture.is_image()) {
    const image::Image& image = picture.image();
    at::Tensor chw = image.type() == image::Type::kU8 ? unit_tensor(image) : to_chw(image);
    picture.set_tensor({.chw = std::move(chw), .order = order});
    return picture;
  }
  const at::Tensor chw = readable(picture, "vision.ToTensor");
  if (chw.scalar_type() == at::kByte) {
    picture.set_tensor({.chw = unit_tensor(chw), .order = order});
  }
  return picture;
}

Transpose::Transpose(const std::array<int, 3>& order) : order_(order) {
  std::array<int, 3> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  ARGOSY_CHECK((sorted == std::array<int, 3>{0, 1, 2}),
               "vision.Transpose",
               "expected the dimensions 0, 1 and 2 in some order, got {{{}, {}, {}}}",
               order[0],
               order[1],
               order[2]);
}

Picture Transpose::operator()(Picture picture) const {
  const bool was_image = picture.is_image();
  const std::optional<image::Order> order = picture.order();
  at::Tensor tensor = was_image ? to_chw(picture.image()).permute({1, 2, 0}) : picture.tensor().chw;
  ARGOSY_CHECK(tensor.dim() == 3,
               "vision.Transpose",
               "expected three dimensions, got {}",
               picture.describe());
  const bool channels_first = order_[0] == (was_image ? 2 : 0);
  picture.set_tensor({.chw = tensor.permute({order_[0], order_[1], order_[2]}).contiguous(),
                      .order = channels_first ? order : std::nullopt});
  return picture;
}

std::string Transpose::to_string() const {
  return fmt::format("Transpose({{{}}})", fmt::join(order_, ", "));
}

Normalize::Normalize(double mean, double std, const NormalizeOptions& options)
    : Normalize(std::vector<double>{mean}, std::vector<double>{std}, options) {}

Normalize::Normalize(std::vector<double> mean,
                     std::vector<double> std,
                     const NormalizeOptions& options)
    : mean_(std::move(mean)), std_(std::move(std)), options_(options) {
  constexpr std::string_view kWhere = "vision.Normalize";
  ARGOSY_CHECK(!mean_.empty() && mean_.size() == std_.size(),
               kWhere,
               "expected as many means as deviations, got {} and {}",
               mean_.size(),
               std_.size());
  for (const double value : mean_) {
    ARGOSY_CHECK(std::isfinite(value), kWhere, "a mean must be finite, got {}", value);
  }
  for (const double value : std_) {
    ARGOSY_CHECK(std::isfinite(value) && static_cast<float>(value) > 0,
                 kWhere,
                 "a std must be positive and finite in f32, got {}",
                 value);
  }
}

Normalize::Constants Normalize::constants(image::Order order, image::Type type) const {
  constexpr std::string_view kWhere = "vision.Normalize";
  const auto channels = static_cast<size_t>(image::channels_of(order));
  ARGOSY_CHECK(
      mean_.size() == 1 || mean_.size() == channels,
      kWhere,
      "expected {} channels, one for each constant, got {} ({}). Give as many constants as "
      "channels, or convert the picture before it.",
      mean_.size(),
      channels,
      image::to_string(order));
  ARGOSY_CHECK(mean_.size() != 3 || order == options_.order,
               kWhere,
               "expected {}, got {}: put ConvertOrder() before it, or say .order if the constants "
               "are written for {}",
               image::to_string(options_.order),
               image::to_string(order),
               image::to_string(order));
  const double most = *std::max_element(mean_.begin(), mean_.end());
  ARGOSY_CHECK(type == image::Type::kF32 || options_.scale == image::Scale::kNone || most <= 1,
               kWhere,
               "expected means of values from 0 to 1, to which u8 is scaled, got {}. Say .scale = "
               "image::Scale::kNone if they are of 0 to 255.",
               most);
  Constants all{.mean = {mean_.begin(), mean_.end()}, .std = {std_.begin(), std_.end()}};
  all.mean.resize(channels, all.mean[0]);
  all.std.resize(channels, all.std[0]);
  return all;
}

Picture Normalize::operator()(Picture picture) const {
  if (picture.is_image()) {
    const image::Image& image = picture.image();
    image::Image out(image.size(), image.order(), image::Type::kF32);
    const int64_t channels = image.channels();
    const Constants all = constants(image.order(), image.type());
    for (int64_t c = 0; c < channels; ++c) {
      const Line line{int64_t{image.height()} * image.width(), channels, channels};
      if (image.type() == image::Type::kU8) {
        normalize(image.row<uint8_t>(0) + c, out.row<float>(0) + c, line, all, c, options_.scale);
      } else {
        normalize(image.row<float>(0) + c, out.row<float>(0) + c, line, all, c, options_.scale);
      }
    }
    picture.set_image(std::move(out));
    return picture;
  }
  const at::Tensor chw = readable(picture, "vision.Normalize");
  const bool bytes = chw.scalar_type() == at::kByte;
  const image::Order order = *picture.order();
  const Constants all = constants(order, bytes ? image::Type::kU8 : image::Type::kF32);
  at::Tensor out = at::empty(chw.sizes(), at::kFloat);
  const int64_t count = chw.size(1) * chw.size(2);
  for (int64_t c = 0; c < chw.size(0); ++c) {
    float* const to = out.data_ptr<float>() + c * count;
    const Line line{count, 1, 1};
    if (bytes) {
      normalize(chw.data_ptr<uint8_t>() + c * count, to, line, all, c, options_.scale);
    } else {
      normalize(chw.data_ptr<float>() + c * count, to, line, all, c, options_.scale);
    }
  }
  picture.set_tensor({.chw = std::move(out), .order = order});
  return picture;
}

std::string Normalize::to_string() const {
  return detail::Description(kName)
      .argument(mean_)
      .argument(std_)
      .option("scale",
              std::string_view(options_.scale == image::Scale::kUnit ? "unit" : "none"),
              std::string_view("unit"))
      .option("order", image::to_string(options_.order), std::string_view("RGB"))
      .done();
}

}  // namespace argosy::vision
