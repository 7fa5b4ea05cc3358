// PNG, TIFF, WebP, BMP, PNM: header and picture, strict and lenient. Seeds: tests/data/images.
// fuzz-sources: image/codec.cpp image/image.cpp image/jpeg_region.cpp
//   image/codecs/bmp.cpp image/codecs/codecs.cpp image/codecs/escape.cpp
//   image/codecs/huffman_table.cpp image/codecs/jpeg.cpp
//   image/codecs/jpeg_entropy.cpp image/codecs/jpeg_pixels.cpp image/codecs/jpeg_reader.cpp
//   image/codecs/jpeg_scan.cpp image/codecs/orientation.cpp image/codecs/png.cpp
//   image/codecs/pnm.cpp image/codecs/tiff.cpp image/codecs/webp.cpp
// fuzz-libraries: -ljpeg -lpng -ltiff -lwebp
// fuzz-options: -max_len=6000
// fuzz-rooms: argosy::image
#include <cstdint>
#include <span>

#include "argosy/base/error.h"
#include "argosy/image/codec.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace argosy::image;  // NOLINT(google-build-using-namespace): this file is about it
                                  // alone
  const std::span<const uint8_t> bytes(data, size);
  if (size == 0 || !sniff(bytes) || sniff(bytes) == Format::kJpeg) {
    return -1;
  }
  for (const Damaged damaged : {Damaged::kRaise, Damaged::kAccept}) {
    try {
      (void)decode(bytes,
                   {.mode = static_cast<Mode>(bytes.back() % 3),
                    .orientation = Orientation::kApply,
                    .damaged = damaged,
                    .most_pixels = 1 << 18,
                    .most_working_bytes = 16 << 20});
    } catch (const argosy::DataError&) {
    }
  }
  try {
    (void)probe(bytes);
  } catch (const argosy::DataError&) {
  }
  return 0;
}
