#include "argosy/vision/datasets/fused_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/image/codec.h"
#include "argosy/image/geometry.h"
#include "argosy/image/jpeg_region.h"
#include "argosy/image/resize.h"

namespace argosy::vision {
namespace {

using image::Box;
using image::BoxF;
using image::Size;

/// What a thread keeps from picture to picture.
struct Workshop {
  image::JpegRegionDecoder decoder{{.damaged = image::Damaged::kRaiseTruncated}};
  image::Resampler resampler{};
  std::vector<uint8_t> resized{};  // a row of it
  std::vector<uint8_t> row{};      // a row of the result
};

Workshop& workshop() {
  thread_local Workshop mine;
  return mine;
}

/// Pixels that are resized, or taken as they are.
struct Pixels {
  const uint8_t* pixels = nullptr;  ///< first row and column
  size_t row_bytes = 0;
  Size size{};
  int channels = 3;
  BoxF box{};  ///< of them, which becomes `target`
  Size target{};
  Box part{};  ///< of the target, which is shown
};

/// Rows and columns that are both in the window and in the resized picture.
Box visible(const FusedDraw& draw) {
  const Box& w = draw.window;
  const int top = std::clamp(w.top, 0, draw.resized.height);
  const int left = std::clamp(w.left, 0, draw.resized.width);
  const int bottom = std::clamp(w.top + w.height, top, draw.resized.height);
  const int right = std::clamp(w.left + w.width, left, draw.resized.width);
  return {top, left, bottom - top, right - left};
}

/// The number of target pixels that `some` of `from` become, for the choice of a reduction.
int wanted(int some, int from, int target) {
  return std::max(1, static_cast<int>(std::ceil(static_cast<double>(some) * target / from)));
}

}  // namespace

/// One pass over a picture.
class FusedPictures::Pass final {
 public:
  Pass(const FusedPictures& chain, const FusedDraw& draw, const PictureTarget& target)
      : chain_(chain),
        draw_(draw),
        target_(target),
        shown_(visible(draw)),
        channels_(image::channels_of(chain.order_)) {}

  void of_pixels(const uint8_t* pixels, size_t row_bytes, int channels) {
    const Box& part = draw_.source;
    run(at_full_scale(pixels + static_cast<size_t>(part.top) * row_bytes +
                          static_cast<size_t>(part.left * channels),
                      row_bytes,
                      channels));
  }

  /// Of the JPEG that the thread's decoder has open.
  void of_jpeg(int channels) {
    if (nothing_shown()) {
      return run({});
    }
    const Box& part = draw_.source;
    const Box need = needed(channels);
    const image::RegionView region = workshop().decoder.decode(
        {part.top + need.top, part.left + need.left, need.height, need.width},
        {wanted(need.height, part.height, draw_.resized.height),
         wanted(need.width, part.width, draw_.resized.width)});
    const int own = image::channels_of(region.order);
    const auto top = static_cast<int>(std::floor(region.window.top));
    const auto left = static_cast<int>(std::floor(region.window.left));
    const uint8_t* pixels = region.pixels + static_cast<size_t>(top) * region.row_bytes +
                            static_cast<size_t>(left * own);
    if (region.reduction == 1) {  // as if all of the part had been decoded: no more is read
      run(at_full_scale(pixels - static_cast<size_t>(need.top) * region.row_bytes -
                            static_cast<size_t>(need.left * own),
                        region.row_bytes,
                        own));
    } else {
      run(reduced(region, pixels, top, left, need));
    }
  }

 private:
  [[nodiscard]] bool resizes() const { return chain_.plan_.resize().has_value(); }
  [[nodiscard]] bool nothing_shown() const { return shown_.height == 0 || shown_.width == 0; }

  /// `pixels`: of the first row and column of the part that counts.
  [[nodiscard]] Pixels at_full_scale(const uint8_t* pixels, size_t row_bytes, int channels) const {
    const Size size{draw_.source.height, draw_.source.width};
    return {.pixels = pixels,
            .row_bytes = row_bytes,
            .size = size,
            .channels = channels,
            .box = {0, 0, static_cast<double>(size.height), static_cast<double>(size.width)},
            .target = draw_.resized,
            .part = shown_};
  }

  /// `pixels`: row `top` and column `left` of the region, in which `need` was decoded smaller.
  [[nodiscard]] Pixels reduced(const image::RegionView& region,
                               const uint8_t* pixels,
                               int top,
                               int left,
                               const Box& need) const {
    const Size size{static_cast<int>(std::ceil(region.window.top + region.window.height)) - top,
                    static_cast<int>(std::ceil(region.window.left + region.window.width)) - left};
    const double by = region.reduction;
    const double down = draw_.source.height / (by * draw_.resized.height);
    const double across = draw_.source.width / (by * draw_.resized.width);
    BoxF box{
        .top = std::max(0.0, region.window.top - top + shown_.top * down - need.top / by),
        .left = std::max(0.0, region.window.left - left + shown_.left * across - need.left / by)};
    box.height = std::min(shown_.height * down, size.height - box.top);
    box.width = std::min(shown_.width * across, size.width - box.left);
    return {.pixels = pixels,
            .row_bytes = region.row_bytes,
            .size = size,
            .channels = image::channels_of(region.order),
            .box = box,
            .target = {shown_.height, shown_.width},
            .part = {0, 0, shown_.height, shown_.width}};
  }

  /// Rows and columns of the part that have a share in what is shown.
  [[nodiscard]] Box needed(int channels) const {
    if (!resizes()) {
      return shown_;
    }
    image::Resampler& resampler = workshop().resampler;
    plan(resampler, at_full_scale(nullptr, 0, channels));
    const auto [top, bottom] = resampler.rows();
    const auto [left, right] = resampler.columns();
    return {top, left, bottom - top, right - left};
  }

  void plan(image::Resampler& resampler, const Pixels& source) const {
    const image::ResizeOptions& how = *chain_.plan_.resize();
    resampler.plan(source.size,
                   source.box,
                   source.target,
                   source.channels,
                   {.interpolation = how.interpolation,
                    .antialias = how.antialias,
                    .flip = draw_.flip_x ? image::Flip::kHorizontal : image::Flip::kOff,
                    .part = source.part});
  }

  void run(const Pixels& source) {
    Workshop& shop = workshop();
    const Box& window = draw_.window;
    const bool resample = resizes() && !nothing_shown();
    if (resample) {
      plan(shop.resampler, source);
      shop.resampler.start(source.pixels, source.row_bytes);
    }
    shop.resized.resize(static_cast<size_t>(shown_.width) * static_cast<size_t>(source.channels));
    shop.row.resize(static_cast<size_t>(window.width) * static_cast<size_t>(channels_));
    const int before = shown_.left - window.left;
    const int first = draw_.flip_x ? window.width - before - shown_.width : before;
    for (int y = 0; y < window.height; ++y) {
      const int from = window.top + y;
      const bool inside = from >= shown_.top && from < shown_.top + shown_.height;
      fill_border(shop.row, inside ? first : window.width);
      if (inside) {
        resample ? shop.resampler.next(shop.resized.data())
                 : take_row(source, from, shop.resized.data());
        spread(shop.resized.data(),
               source.channels,
               shop.row.data() + static_cast<size_t>(first * channels_));
      }
      const int to = draw_.flip_y ? window.height - 1 - y : y;
      chain_.normalize_.row(shop.row.data(),
                            window.width,
                            {.first = target_.first + to * target_.row_stride,
                             .channel_stride = static_cast<size_t>(target_.channel_stride)});
    }
  }

  /// The part as it is, without resizing.
  void take_row(const Pixels& source, int y, uint8_t* out) const {
    const auto channels = static_cast<size_t>(source.channels);
    const auto width = static_cast<size_t>(shown_.width);
    const uint8_t* from = source.pixels + static_cast<size_t>(y) * source.row_bytes +
                          static_cast<size_t>(shown_.left) * channels;
    if (!draw_.flip_x) {
      std::memcpy(out, from, width * channels);
      return;
    }
    for (size_t x = 0; x < width; ++x) {
      std::memcpy(out + (width - 1 - x) * channels, from + x * channels, channels);
    }
  }

  /// As many channels as the chain is given: gray becomes three of the same.
  void spread(const uint8_t* from, int channels, uint8_t* to) const {
    const auto width = static_cast<size_t>(shown_.width);
    const auto wide = static_cast<size_t>(channels_);
    if (channels == channels_) {
      std::memcpy(to, from, width * wide);
      return;
    }
    for (size_t x = 0; x < width; ++x) {
      std::memset(to + x * wide, from[x], wide);
    }
  }

  /// Before and behind what is shown. `first`: the shown pixels' first place; the width: none.
  void fill_border(std::vector<uint8_t>& row, int first) const {
    const int width = draw_.window.width;
    const auto fill = [&](int begin, int end) {
      for (int x = begin; x < end; ++x) {
        std::memcpy(row.data() + static_cast<size_t>(x * channels_),
                    chain_.border_.data(),
                    chain_.border_.size());
      }
    };
    fill(0, first);
    fill(std::min(width, first + shown_.width), width);
  }

  const FusedPictures& chain_;
  const FusedDraw& draw_;
  const PictureTarget& target_;
  const Box shown_;  // of the resized picture
  const int channels_;
};

std::unique_ptr<const FusedPictures> FusedPictures::make(const Compose& chain, image::Order order) {
  const std::optional<FusedPlan> plan = recognise(chain);
  if (!plan.has_value() || !plan->size().has_value()) {
    return nullptr;
  }
  const FusedPlan::Arithmetic arithmetic = plan->arithmetic(order);
  if (arithmetic.is_u8) {
    return nullptr;
  }
  image::Normalization constants{.divisor = arithmetic.unit ? 255.0F : 1.0F,
                                 .channels = image::channels_of(order)};
  std::ranges::copy(arithmetic.mean, constants.mean.begin());
  std::ranges::copy(arithmetic.std, constants.std.begin());
  return std::unique_ptr<const FusedPictures>(
      new FusedPictures(*plan, chain.is_random(), order, constants));
}

FusedPictures::FusedPictures(FusedPlan plan,
                             bool is_random,
                             image::Order order,
                             const image::Normalization& arithmetic)
    : plan_(std::move(plan)), is_random_(is_random), order_(order), normalize_(arithmetic) {
  const image::Image edge = image::pad(
      image::Image({1, 1}, order), {1, 0, 0, 0}, {image::PadMode::kConstant, plan_.border()});
  const auto* pixel = edge.row<uint8_t>(0);
  border_.assign(pixel, pixel + edge.channels());
}

std::vector<int64_t> FusedPictures::sizes() const {
  const Size size = *plan_.size();
  return {image::channels_of(order_), size.height, size.width};
}

bool FusedPictures::keeps_places(Size stored) const {
  if (is_random_) {
    return false;
  }
  data::Random unused(0, 0, 0);
  const Box whole{0, 0, stored.height, stored.width};
  return plan_.draw(stored, unused) ==
         FusedDraw{.source = whole, .resized = stored, .window = whole};
}

void FusedPictures::write(const datasets::Source& source,
                          const datasets::Sample& sample,
                          data::Random& random,
                          const PictureTarget& target) const {
  const datasets::StoredPicture& picture = sample.picture;
  const bool encoded = picture.kind == datasets::StoredPicture::Kind::kEncoded;
  const int channels = image::channels_of(order_);
  if (!encoded && picture.channels == channels) {
    const FusedDraw draw = plan_.draw(picture.size, random);
    Pass(*this, draw, target)
        .of_pixels(picture.bytes.data(),
                   static_cast<size_t>(picture.size.width) * static_cast<size_t>(channels),
                   channels);
    return;
  }
  if (encoded && image::sniff(picture.bytes) == image::Format::kJpeg) {
    const image::ImageInfo info = workshop().decoder.open(picture.bytes, sample.name);
    if (info.channels == 1 || order_ == image::Order::kRgb) {
      const FusedDraw draw = plan_.draw(info.size, random);
      Pass(*this, draw, target).of_jpeg(info.channels == 1 ? 1 : 3);
      return;
    }
  }
  const image::Image image =
      source.decoded(sample, {.order = order_, .damaged = image::Damaged::kRaiseTruncated});
  const FusedDraw draw = plan_.draw(image.size(), random);
  Pass(*this, draw, target).of_pixels(image.row<uint8_t>(0), image.row_bytes(), image.channels());
}

namespace {

class Runner final : public ChainRunner {
 public:
  [[nodiscard]] std::unique_ptr<const OnePass> one_pass(const Compose& chain,
                                                        image::Order order) const override {
    return FusedPictures::make(chain, order);
  }
  [[nodiscard]] KeypointTensor run(const Compose& chain,
                                   KeypointImage picture,
                                   data::Random& random) const override {
    if (!picture.points.defined()) {
      return {.image = chain(std::move(picture.image), random), .points = {}};
    }
    return chain(std::move(picture), random);
  }
};

}  // namespace

const ChainRunner& chain_runner() {
  static const Runner runner;
  return runner;
}

}  // namespace argosy::vision
