#include "argosy/image/codecs/codecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::image::codecs {
namespace {

uint8_t luma(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 0x8000) >> 16);
}

/// Writes `to` channels of a pixel that has `from`.
void convert_row(const uint8_t* in, int from, uint8_t* out, int to, int width) {
  for (int x = 0; x < width; ++x, in += from, out += to) {
    if (to == 1) {
      out[0] = luma(in);
    } else if (from == 1) {
      out[0] = out[1] = out[2] = in[0];
    } else {
      std::memcpy(out, in, 3);
    }
  }
}

}  // namespace

Size checked_size(
    int64_t height, int64_t width, int64_t most_pixels, const char* where, std::string_view name) {
  if (height < 1 || width < 1) {
    throw DataError(where,
                    fmt::format("empty: the header says {} x {} pixels", height, width),
                    {std::string(name)});
  }
  const int64_t most = std::min(most_pixels, Image::kMostPixels);
  if (height > most || width > most / height) {
    throw DataError(
        where,
        fmt::format(
            "too large: the header promises {} x {} pixels, the limit is {}", height, width, most),
        {std::string(name)});
  }
  return {static_cast<int>(height), static_cast<int>(width)};
}

void check_working_bytes(int64_t bytes,
                         int64_t most_bytes,
                         const char* where,
                         std::string_view name) {
  if (bytes > most_bytes) {
    throw DataError(
        where,
        fmt::format("too large: decoding it needs {} bytes beside the picture, the limit "
                    "is {} (DecodeOptions::most_working_bytes)",
                    bytes,
                    most_bytes),
        {std::string(name)});
  }
}

Image new_image(Size size, Order order, const DecodeOptions& options) {
  Image image(size, order);
  if (options.damaged == Damaged::kAccept) {
    std::memset(image.data(), 0, image.total_bytes());
  }
  return image;
}

std::string rows_that_came(int64_t rows, int64_t of) {
  return fmt::format("{} of {} rows came", rows, of);
}

Image to_mode(Image image, Mode mode) {
  const Order wanted = mode == Mode::kGray  ? Order::kGray
                       : mode == Mode::kRgb ? Order::kRgb
                                            : image.order();
  if (wanted == image.order()) {
    return image;
  }
  Image out(image.size(), wanted);
  for (int y = 0; y < image.height(); ++y) {
    convert_row(image.row<uint8_t>(y),
                image.channels(),
                out.row<uint8_t>(y),
                out.channels(),
                image.width());
  }
  return out;
}

// Source: Pillow 12, Convert.c, cmyk2rgb(), with its rounded division by 255.
void adobe_cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, size_t pixels) {
  for (size_t i = 0; i < pixels; ++i, cmyk += 4, rgb += 3) {
    const int light = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int ink = 255 - cmyk[c];
      const int product = ink * light + 128;
      rgb[c] = static_cast<uint8_t>(std::max(light - (((product >> 8) + product) >> 8), 0));
    }
  }
}

Image upright(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) {
    return image;
  }
  const int height = image.height();
  const int width = image.width();
  const bool turned = orientation >= 5;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_below =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image out(turned ? Size{width, height} : image.size(), image.order());
  const auto channels = static_cast<size_t>(image.channels());
  for (int y = 0; y < out.height(); ++y) {
    uint8_t* to = out.row<uint8_t>(y);
    for (int x = 0; x < out.width(); ++x, to += channels) {
      const int row = turned ? x : y;
      const int column = turned ? y : x;
      const uint8_t* from =
          image.row<uint8_t>(from_below ? height - 1 - row : row) +
          static_cast<size_t>(from_right ? width - 1 - column : column) * channels;
      for (size_t c = 0; c < channels; ++c) {
        to[c] = from[c];
      }
    }
  }
  return out;
}

}  // namespace argosy::image::codecs
