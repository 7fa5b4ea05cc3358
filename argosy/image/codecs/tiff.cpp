#include <fmt/format.h>
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"

namespace argosy::image::codecs {
namespace {

/// A file in memory for libtiff, and what libtiff says about it.
struct Source {
  Bytes bytes{};
  size_t at = 0;
  std::array<char, 200> message{};  // the first: the others follow from it

  static tmsize_t read(thandle_t handle, void* to, tmsize_t count) {
    auto& self = *static_cast<Source*>(handle);
    const size_t left = self.at < self.bytes.size() ? self.bytes.size() - self.at : 0;
    const size_t got = std::min(static_cast<size_t>(std::max<tmsize_t>(count, 0)), left);
    if (got > 0) {
      std::memcpy(to, self.bytes.data() + self.at, got);
    }
    self.at += got;
    return static_cast<tmsize_t>(got);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    auto& self = *static_cast<Source*>(handle);
    const size_t base = whence == SEEK_CUR ? self.at : whence == SEEK_END ? self.bytes.size() : 0;
    self.at = base + offset;
    return self.at;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }
  static int on_error(TIFF*, void* self, const char*, const char* format, va_list values) {
    auto& message = static_cast<Source*>(self)->message;
    if (message[0] == '\0') {
      (void)std::vsnprintf(message.data(), message.size(), format, values);
    }
    return 1;
  }
  static int on_warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }
};

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using Tiff = std::unique_ptr<TIFF, Close>;

[[noreturn]] void fail(const Source& source, std::string_view name, const std::string& after = "") {
  const std::string said = source.message[0] != '\0' ? source.message.data() : "unreadable";
  throw DataError("image.tiff", "damaged or unsupported: " + said + after, {std::string(name)});
}

// Without memory mapping: libtiff checks less of what it reads from a map.
Tiff open(Source& source, std::string_view name, int64_t most_bytes) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), most_bytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), Source::on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), Source::on_warning, &source);
  Tiff tiff(TIFFClientOpenExt("memory",
                              "rm",
                              &source,
                              Source::read,
                              Source::write,
                              Source::seek,
                              Source::close,
                              Source::size,
                              nullptr,
                              nullptr,
                              options.get()));
  if (tiff == nullptr) {
    fail(source, name);
  }
  return tiff;
}

struct TiffHeader {
  uint32_t height = 0;
  uint32_t width = 0;
  uint16_t bits = 1;
  uint16_t samples = 1;
  uint16_t photometric = 0;
  uint16_t compression = COMPRESSION_NONE;
  uint16_t extra = 0;  // samples beyond the color
};

TiffHeader header_of(TIFF* tiff) {
  TiffHeader header;
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &header.height);
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &header.width);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &header.bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &header.samples);
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &header.photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &header.compression);
  uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &header.extra, &kinds);
  return header;
}

/// What people write. libtiff knows rarer ones; each is code that reads a stranger's bytes.
void check_compression(const TiffHeader& header, std::string_view name) {
  switch (header.compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
      return;
    default:
      throw DataError("image.tiff",
                      fmt::format("unsupported compression {}: expected none, CCITT, LZW, JPEG, "
                                  "deflate or PackBits",
                                  header.compression),
                      {std::string(name)});
  }
}

Order order_of(const TiffHeader& header, Mode mode) {
  const bool gray =
      header.photometric == PHOTOMETRIC_MINISBLACK || header.photometric == PHOTOMETRIC_MINISWHITE;
  if (header.extra > 0 && mode == Mode::kAsItIs) {
    return Order::kRgba;
  }
  return gray ? Order::kGray : Order::kRgb;
}

/// libtiff's pixels (red lowest) as ours.
void copy_pixels(const uint32_t* from, int width, int channels, uint8_t* to) {
  for (int x = 0; x < width; ++x) {
    const std::array<uint8_t, 4> pixel{static_cast<uint8_t>(TIFFGetR(from[x])),
                                       static_cast<uint8_t>(TIFFGetG(from[x])),
                                       static_cast<uint8_t>(TIFFGetB(from[x])),
                                       static_cast<uint8_t>(TIFFGetA(from[x]))};
    for (int c = 0; c < channels; ++c) {
      *to++ = pixel[static_cast<size_t>(c)];
    }
  }
}

/// Decodes strip by strip, or a tiled picture at once. Returns the number of rows that came.
int read_pixels(TIFF* tiff, Image& image, const DecodeOptions& options) {
  uint32_t rows_per_strip = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &rows_per_strip);
  const int all = image.height();
  const int step =
      TIFFIsTiled(tiff) != 0 ? all : static_cast<int>(std::clamp<int64_t>(rows_per_strip, 1, all));
  const int64_t pixels = int64_t{step} * image.width();
  check_working_bytes(pixels * 4, options.most_working_bytes, "image.tiff", options.name);
  std::vector<uint32_t> raster(static_cast<size_t>(pixels));
  const int stop = options.damaged != Damaged::kAccept ? 1 : 0;
  for (int y = 0; y < all; y += step) {
    const int rows = std::min(step, all - y);
    const int done =
        TIFFIsTiled(tiff) != 0
            ? TIFFReadRGBAImageOriented(tiff,
                                        static_cast<uint32_t>(image.width()),
                                        static_cast<uint32_t>(all),
                                        raster.data(),
                                        ORIENTATION_BOTLEFT,
                                        stop)
            : TIFFReadRGBAStripExt(tiff, static_cast<uint32_t>(y), raster.data(), stop);
    if (done == 0) {
      return y;
    }
    for (int row = 0; row < rows; ++row) {  // they come with the lowest row first
      copy_pixels(
          raster.data() + static_cast<size_t>(rows - 1 - row) * static_cast<size_t>(image.width()),
          image.width(),
          image.channels(),
          image.row<uint8_t>(y + row));
    }
  }
  return all;
}

}  // namespace

Image decode_tiff(Bytes bytes, const DecodeOptions& options) {
  Source source{.bytes = bytes};
  const Tiff tiff = open(source, options.name, options.most_working_bytes);
  const TiffHeader header = header_of(tiff.get());
  const Size size =
      checked_size(header.height, header.width, options.most_pixels, "image.tiff", options.name);
  check_compression(header, options.name);
  // As stored: decode() turns it. And libtiff would multiply colors by an alpha that is not
  // "associated": say that it is.
  TIFFSetField(tiff.get(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  if (header.extra > 0) {
    std::vector<uint16_t> kinds(header.extra, EXTRASAMPLE_ASSOCALPHA);
    TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, header.extra, kinds.data());
  }
  Image image = new_image(size, order_of(header, options.mode), options);
  const int rows = read_pixels(tiff.get(), image, options);
  if (rows < size.height && options.damaged != Damaged::kAccept) {
    fail(source, options.name, "; " + rows_that_came(rows, size.height));
  }
  return to_mode(std::move(image), options.mode);
}

ImageInfo probe_tiff(Bytes bytes, std::string_view name) {
  Source source{.bytes = bytes};
  const Tiff tiff = open(source, name, int64_t{64} << 20);
  const TiffHeader header = header_of(tiff.get());
  const Size size =
      checked_size(header.height, header.width, Image::kMostPixels, "image.tiff", name);
  return {Format::kTiff, size, header.samples, header.bits, orientation_in_tiff(bytes)};
}

}  // namespace argosy::image::codecs
