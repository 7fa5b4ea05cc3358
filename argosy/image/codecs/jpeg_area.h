#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "argosy/image/codecs/jpeg_reader.h"
#include "argosy/image/codecs/jpeg_scan.h"
#include "argosy/image/codecs/libjpeg.h"
#include "argosy/image/jpeg_region.h"

namespace argosy::image::codecs {

/// Memory that grows and never shrinks; contents are lost when it grows.
class Buffer final {
 public:
  [[nodiscard]] uint8_t* at_least(size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(new (std::align_val_t{kAlign}) uint8_t[bytes]);
      bytes_ = bytes;
    }
    return memory_.get();
  }
  static constexpr size_t kAlign = 64;

 private:
  struct Free {
    void operator()(uint8_t* memory) const {
      ::operator delete[](memory, std::align_val_t{kAlign});
    }
  };
  std::unique_ptr<uint8_t[], Free> memory_{};
  size_t bytes_ = 0;
};

/// What the ways of decoding an area share: the picture, whose header has been read, and the
/// memory.
struct JpegArea {
  JpegReader reader{};
  JpegScan scan{};
  std::array<Buffer, 3> buffers{};
};

/// A box as MCUs, the units of a scan: rows and columns [first, last] of units of height × width
/// pixels of the full picture.
struct McuBox {
  int height = DCTSIZE;
  int width = DCTSIZE;
  int first_row = 0;
  int last_row = 0;
  int first_column = 0;
  int last_column = 0;

  [[nodiscard]] int rows() const { return last_row - first_row + 1; }
  [[nodiscard]] int columns() const { return last_column - first_column + 1; }
};

/// Decodes `box` at 8/reduction of the DCT's size to interleaved pixels, by jpeg_crop_scanline and
/// jpeg_skip_scanlines; where `own_entropy` applies, JpegScan reads the codes for libjpeg.
/// False: JpegScan met what it is not for. Open the picture again and do without.
[[nodiscard]] bool decode_pixels(JpegArea& area, const Box& box, bool own_entropy, RegionView& out);

/// Decodes `box` to planes, MCU by MCU: codes by JpegScan, transformed by libjpeg's inverse DCTs.
/// False: as above.
[[nodiscard]] bool decode_planes_by_mcu(JpegArea& area, const Box& box, PlanesView& out);

/// The same through libjpeg's raw data interface: for all files, progressive ones too.
void decode_planes_by_row(JpegArea& area, const Box& box, PlanesView& out);

}  // namespace argosy::image::codecs
