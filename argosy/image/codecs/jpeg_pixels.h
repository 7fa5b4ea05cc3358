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

/// Memory that grows and never shrinks; contents are lost when it grows.
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

/// The picture, whose header has been read and whose scale has been set, and memory that is kept
/// for the next.
struct JpegArea {
  JpegReader reader{};
  JpegScan scan{};
  Buffer pixels{};
  Buffer rgb{};  ///< of what libjpeg gives as CMYK
};

/// Decodes `box` to interleaved pixels, by jpeg_crop_scanline and jpeg_skip_scanlines; with
/// Entropy::kOwn JpegScan reads the codes for libjpeg. False: JpegScan is not for this picture, or
/// met what it is not for: open the picture again and decode with Entropy::kLibjpeg, which never
/// gives false. Errors: DataError.
[[nodiscard]] bool decode_pixels(JpegArea& area, const Box& box, Entropy entropy, RegionView& out);

}  // namespace argosy::image::codecs
