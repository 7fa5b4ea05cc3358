#include <fmt/format.h>
#include <webp/decode.h>

#include <string>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"

namespace argosy::image::codecs {
namespace {

[[noreturn]] void fail(const std::string& what, std::string_view name) {
  throw DataError("image.webp", what, {std::string(name)});
}

WebPBitstreamFeatures features_of(Bytes bytes, std::string_view name) {
  WebPBitstreamFeatures features{};
  switch (WebPGetFeatures(bytes.data(), bytes.size(), &features)) {
    case VP8_STATUS_OK:
      return features;
    case VP8_STATUS_NOT_ENOUGH_DATA:
      fail("truncated in its header", name);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      fail("unsupported: the header asks for what libwebp does not know", name);
    default:
      fail("damaged header", name);
  }
}

/// The incremental decoder writes rows as they come: what there is of a truncated file.
int read_rows(Bytes bytes, WebPDecoderConfig& config) {
  int last = 0;
  int width = 0;
  int height = 0;
  int stride = 0;
  WebPIDecoder* const decoder = WebPIDecode(nullptr, 0, &config);
  if (decoder == nullptr) {
    return 0;
  }
  (void)WebPIAppend(decoder, bytes.data(), bytes.size());
  (void)WebPIDecGetRGB(decoder, &last, &width, &height, &stride);
  WebPIDelete(decoder);
  return last;
}

}  // namespace

Image decode_webp(Bytes bytes, const DecodeOptions& options) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    throw InternalError("image.webp", "libwebp is of another version than its header");
  }
  config.input = features_of(bytes, options.name);
  if (config.input.has_animation != 0) {
    fail("unsupported: an animation", options.name);
  }
  const Size size = checked_size(
      config.input.height, config.input.width, options.most_pixels, "image.webp", options.name);
  // A lossless picture is held as 32-bit pixels, with its cache of rows; a lossy one's alpha as
  // bytes.
  check_working_bytes(int64_t{size.height} * size.width * 4,
                      options.most_working_bytes,
                      "image.webp",
                      options.name);
  const bool alpha = config.input.has_alpha != 0 && options.mode == Mode::kAsItIs;
  Image image = new_image(size, alpha ? Order::kRgba : Order::kRgb, options);
  config.output.colorspace = alpha ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      image.row<uint8_t>(0), static_cast<int>(image.row_bytes()), image.total_bytes()};
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  if (status == VP8_STATUS_OUT_OF_MEMORY) {
    fail("no memory for it", options.name);
  }
  if (status != VP8_STATUS_OK) {
    const int rows = read_rows(bytes, config);
    if (options.damaged != Damaged::kAccept) {
      const bool ended = status == VP8_STATUS_NOT_ENOUGH_DATA || status == VP8_STATUS_SUSPENDED;
      fail((ended ? "truncated; " : "damaged; ") + rows_that_came(rows, size.height), options.name);
    }
  }
  return to_mode(std::move(image), options.mode);
}

ImageInfo probe_webp(Bytes bytes, std::string_view name) {
  const WebPBitstreamFeatures features = features_of(bytes, name);
  return {Format::kWebp,
          checked_size(features.height, features.width, Image::kMostPixels, "image.webp", name),
          features.has_alpha != 0 ? 4 : 3,
          8,
          orientation_in_webp(bytes)};
}

}  // namespace argosy::image::codecs
