#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "argosy/image/codecs/jpeg_reader.h"
#include "argosy/image/codecs/jpeg_scan.h"
#include "argosy/image/jpeg_region.h"

namespace argosy::image::codecs {

/// Memory that grows and never shrinks. Its content is lost when it grows.
class Buffer final {
 public:
  [[nodiscard]] uint8_t* at_least(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(new uint8_t[bytes]);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<uint8_t[]> memory_{};
  size_t bytes_ = 0;
};

/// A picture whose header was read and whose scale was set, and memory that is kept for the next.
struct JpegArea {
  JpegReader reader{};
  JpegScan scan{};
  Buffer pixels{};
  Buffer rgb{};  ///< for pictures that libjpeg gives as CMYK
};

/// Decodes `box` to interleaved pixels, by jpeg_crop_scanline and jpeg_skip_scanlines. With
/// Entropy::kOwn, JpegScan reads the codes for libjpeg. False: JpegScan cannot read this picture.
/// Then open it again and decode with Entropy::kLibjpeg, which never returns false. Errors:
/// DataError.
[[nodiscard]] bool decode_pixels(JpegArea& area, const Box& box, Entropy entropy, RegionView& out);

}  // namespace argosy::image::codecs
