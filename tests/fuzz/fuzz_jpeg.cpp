// JPEG: header, whole picture and region. Where Argosy's reader of Huffman codes and
// libjpeg's both find a region sound, their pixels must be the same. Seeds:
// tests/data/images/*.jpg.
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
#include <cstdlib>
#include <cstring>
#include <span>

#include "argosy/base/error.h"
#include "argosy/image/codec.h"
#include "argosy/image/jpeg_region.h"

namespace {

using argosy::DataError;
using namespace argosy::image;  // NOLINT(google-build-using-namespace): this file is about it alone

constexpr int64_t kMostPixels = 1 << 18;

/// A box and a reduction that the bytes themselves choose.
Box box_of(std::span<const uint8_t> bytes, Size size) {
  const auto pick = [&](size_t i, int below) { return bytes[bytes.size() - 1 - i] % below; };
  Box box{pick(0, size.height), pick(1, size.width), 0, 0};
  box.height = 1 + pick(2, size.height - box.top);
  box.width = 1 + pick(3, size.width - box.left);
  return box;
}

bool decode_region(JpegRegionDecoder& decoder, std::span<const uint8_t> bytes, RegionView& view) {
  try {
    const Box box = box_of(bytes, decoder.open(bytes).size);
    const int reduction = 1 << bytes[bytes.size() - 5] % 4;
    view = decoder.decode(
        box, {(box.height + reduction - 1) / reduction, (box.width + reduction - 1) / reduction});
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void compare(const RegionView& a, const RegionView& b) {
  if (a.size != b.size || a.order != b.order) {
    std::abort();
  }
  const size_t row = static_cast<size_t>(a.size.width) * static_cast<size_t>(channels_of(a.order));
  for (int y = 0; y < a.size.height; ++y) {
    if (std::memcmp(a.pixels + static_cast<size_t>(y) * a.row_bytes,
                    b.pixels + static_cast<size_t>(y) * b.row_bytes,
                    row) != 0) {
      std::abort();
    }
  }
}

void decode_whole(std::span<const uint8_t> bytes, Damaged damaged) {
  try {
    (void)decode(bytes,
                 {.mode = static_cast<Mode>(bytes.back() % 3),
                  .orientation = Orientation::kApply,
                  .damaged = damaged,
                  .most_pixels = kMostPixels});
  } catch (const DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (size < 16 || sniff(bytes) != Format::kJpeg) {
    return -1;
  }
  static JpegRegionDecoder own({.most_pixels = kMostPixels});
  static JpegRegionDecoder theirs({.most_pixels = kMostPixels, .entropy = Entropy::kLibjpeg});
  static JpegRegionDecoder bearing({.damaged = Damaged::kAccept, .most_pixels = kMostPixels});
  RegionView a;
  RegionView b;
  if (decode_region(own, bytes, a) && decode_region(theirs, bytes, b)) {
    compare(a, b);
  }
  (void)decode_region(bearing, bytes, a);
  decode_whole(bytes, Damaged::kRaise);
  decode_whole(bytes, Damaged::kAccept);
  return 0;
}
