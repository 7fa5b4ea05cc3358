#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "argosy/base/check.h"
#include "argosy/image/color.h"
#include "argosy/image/color_pixel.h"

namespace argosy::image {
namespace {

template <typename T>
struct Color {
  T red, green, blue;
};

/// Places among these three of red, green and blue, for each sixth of the circle: which is the
/// greatest, which falls or rises, which is the least.
enum Level : uint8_t { kMost, kFalling, kRising, kLeast };
constexpr std::array<std::array<Level, 3>, 6> kSixths{{{kMost, kRising, kLeast},
                                                       {kFalling, kMost, kLeast},
                                                       {kLeast, kMost, kRising},
                                                       {kLeast, kFalling, kMost},
                                                       {kRising, kLeast, kMost},
                                                       {kMost, kLeast, kFalling}}};

template <typename T>
Color<T> color_of(int sixth, const std::array<T, 4>& levels) {
  const auto& [red, green, blue] = kSixths[static_cast<size_t>(sixth)];
  return {levels[red], levels[green], levels[blue]};
}

/// Hue in sixths of a circle, from -1 to 5, of a color that is not gray; `spread` is between its
/// greatest and its least channel. The sums are f64 where Pillow's are.
template <typename T, typename Sum>
float sixths(const Color<T>& color, T most, float spread) {
  const float red = static_cast<float>(most - color.red) / spread;
  const float green = static_cast<float>(most - color.green) / spread;
  const float blue = static_cast<float>(most - color.blue) / spread;
  if (color.red == most) {
    return blue - green;
  }
  return color.green == most ? static_cast<float>(Sum{2} + red - blue)
                             : static_cast<float>(Sum{4} + green - red);
}

/// Of a number from 0 to 255. std::round is a call where there is no SSE 4.1.
uint8_t rounded(double value) {
  const auto whole = static_cast<uint8_t>(value);
  return static_cast<uint8_t>(whole + (value - whole >= 0.5 ? 1 : 0));
}

/// By way of 8 bits of hue, saturation and value: Pillow's Convert.c, in its types.
class TurnU8 final {
 public:
  explicit TurnU8(double shift) : shift_(static_cast<int>(shift * 255)) {
    for (int hue = 0; hue < 256; ++hue) {
      const double place = hue * 6.0 / 255.0;
      auto& [sixth, part] = hues_[static_cast<size_t>(hue)];
      sixth = static_cast<int>(place);
      part = static_cast<float>(place - sixth);
      sixth %= 6;
    }
  }

  Color<uint8_t> operator()(const Color<uint8_t>& color) const {
    const uint8_t most = std::max({color.red, color.green, color.blue});
    const uint8_t least = std::min({color.red, color.green, color.blue});
    if (most == least) {
      return color;
    }
    const auto spread = static_cast<float>(most - least);
    const double turn =
        sixths<uint8_t, double>(color, most, spread) / 6.0 + 1.0;  // from 5/6 to 11/6
    const auto place = static_cast<float>(turn >= 1 ? turn - 1 : turn);
    const auto hue = static_cast<uint8_t>(static_cast<int>(place * 255.0) + shift_);
    const int saturation = static_cast<int>(spread / static_cast<float>(most) * 255.0);
    if (saturation == 0) {
      return {most, most, most};
    }
    const auto [sixth, part] = hues_[hue];
    const auto full = static_cast<float>(saturation / 255.0);
    const auto level = [&](double share) { return rounded(most * share); };
    return color_of<uint8_t>(
        sixth,
        {most, level(1.0 - full * part), level(1.0 - full * (1.0 - part)), level(1.0 - full)});
  }

 private:
  struct Hue {
    int sixth = 0;
    float part = 0;
  };
  int shift_;
  std::array<Hue, 256> hues_{};
};

/// torchvision's _rgb2hsv and _hsv2rgb.
class TurnF32 final {
 public:
  explicit TurnF32(double shift) : shift_(static_cast<float>(shift)) {}

  Color<float> operator()(const Color<float>& color) const {
    const float most = std::max({color.red, color.green, color.blue});
    const float least = std::min({color.red, color.green, color.blue});
    const bool gray = most == least;
    const float saturation = (most - least) / (gray ? 1 : most);
    float hue = sixths<float, float>(color, most, gray ? 1 : most - least);
    hue = std::fmod(hue / 6.0F + 1.0F, 1.0F) + shift_;
    hue -= std::floor(hue);
    const float place = hue * 6.0F;
    const int sixth = place >= 0 && place < 6 ? static_cast<int>(place) : 0;  // 0 for NaN too
    const float part = place - std::floor(place);
    const auto level = [&](float share) { return std::clamp(most * share, 0.0F, 1.0F); };
    return color_of<float>(sixth,
                           {most,
                            level(1.0F - saturation * part),
                            level(1.0F - saturation * (1.0F - part)),
                            level(1.0F - saturation)});
  }

 private:
  float shift_;
};

template <typename T, typename Turn>
void turn_all(const Image& image, Image& result, const Turn& turn) {
  const detail::Places at = detail::places_of(image.order());
  detail::for_each_pixel<T>(image, result, [&](const T* from, T* to) {
    const Color<T> turned = turn(Color<T>{from[at.red], from[at.green], from[at.blue]});
    to[at.red] = turned.red;
    to[at.green] = turned.green;
    to[at.blue] = turned.blue;
  });
}

}  // namespace

Image adjust_hue(const Image& image, double shift) {
  ARGOSY_CHECK(!image.empty(), "image.adjust_hue", "the image is empty");
  ARGOSY_CHECK(shift >= -0.5 && shift <= 0.5,
               "image.adjust_hue",
               "expected a shift from -0.5 to 0.5 of a circle, got {}",
               shift);
  Image result = image;
  if (image.order() == Order::kGray) {
    return result;
  }
  if (image.type() == Type::kU8) {
    turn_all<uint8_t>(image, result, TurnU8(shift));
  } else {
    turn_all<float>(image, result, TurnF32(shift));
  }
  return result;
}

}  // namespace argosy::image
