#include "argosy/image/codecs/codecs.h"

// Walks just far enough into each format to find EXIF's orientation (tag 0x0112 of its first
// folder).
namespace argosy::image::codecs {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;
constexpr size_t kEntryBytes = 12;

}  // namespace

// Source: TIFF 6.0, section 2; Exif 2.32, section 4.5.
int orientation_in_tiff(Bytes bytes) {
  const bool little = starts_with(bytes, "II");
  if (bytes.size() < 8 || (!little && !starts_with(bytes, "MM"))) {
    return 1;
  }
  const auto get16 = [&](size_t at) { return little ? le16(bytes, at) : be16(bytes, at); };
  const size_t folder = little ? le32(bytes, 4) : be32(bytes, 4);
  if (get16(2) != 42 || folder + 2 > bytes.size()) {
    return 1;
  }
  const size_t entries = get16(folder);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = folder + 2 + i * kEntryBytes;
    if (at + kEntryBytes > bytes.size()) {
      return 1;
    }
    if (get16(at) == kOrientationTag) {
      const uint32_t value = get16(at + 8);
      return get16(at + 2) == kShort && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
  }
  return 1;
}

// Segments up to the first scan: FF, marker, length of what follows (itself included).
int orientation_in_jpeg(Bytes bytes) {
  constexpr uint8_t kApp1 = 0xe1;
  constexpr uint8_t kScan = 0xda;
  constexpr std::string_view kExif("Exif\0\0", 6);
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == 0xff) {
    const uint8_t marker = bytes[at + 1];
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    const size_t length = be16(bytes, at + 2);
    if (marker == kScan || length < 2 || at + 2 + length > bytes.size()) {
      break;
    }
    if (marker == kApp1 && length > 2 + kExif.size() && starts_with(bytes, kExif, at + 4)) {
      return orientation_in_tiff(bytes.subspan(at + 4 + kExif.size(), length - 2 - kExif.size()));
    }
    at += 2 + length;
  }
  return 1;
}

// Chunks: length, name, data, checksum.
int orientation_in_png(Bytes bytes) {
  size_t at = 8;
  while (at + 12 <= bytes.size() && !starts_with(bytes, "IEND", at + 4)) {
    const size_t length = be32(bytes, at);
    if (length > bytes.size() - at - 12) {
      break;
    }
    if (starts_with(bytes, "eXIf", at + 4)) {
      return orientation_in_tiff(bytes.subspan(at + 8, length));
    }
    at += 12 + length;
  }
  return 1;
}

// RIFF: name, length, data, a byte more when the length is odd. Some writers keep JPEG's prefix.
int orientation_in_webp(Bytes bytes) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  size_t at = 12;
  while (at + 8 <= bytes.size()) {
    const size_t length = le32(bytes, at + 4);
    if (length > bytes.size() - at - 8) {
      break;
    }
    if (starts_with(bytes, "EXIF", at)) {
      const Bytes block = bytes.subspan(at + 8, length);
      return orientation_in_tiff(starts_with(block, kExif) ? block.subspan(kExif.size()) : block);
    }
    at += 8 + length + (length & 1);
  }
  return 1;
}

}  // namespace argosy::image::codecs
