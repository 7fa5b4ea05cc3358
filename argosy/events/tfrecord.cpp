#include "argosy/events/tfrecord.h"

#include <algorithm>

#include <isa-l/crc.h>

namespace argosy::events {
namespace {

std::string masked_checksum(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8U, 4);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffffU;
  while (!bytes.empty()) {  // the library takes an int
    const auto piece = static_cast<int>(std::min<size_t>(bytes.size(), 1 << 30));
    // Its parameter lacks a const; it only reads.
    crc =
        crc32_iscsi(reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data())), piece, crc);
    bytes.remove_prefix(static_cast<size_t>(piece));
  }
  return crc ^ 0xffffffffU;
}

std::string little_endian(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) {
    text += static_cast<char>(number >> (8 * i) & 0xff);
  }
  return text;
}

std::string tfrecord_frame(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  std::string frame = length + masked_checksum(length);
  frame.reserve(frame.size() + data.size() + 4);
  frame += data;
  return frame += masked_checksum(data);
}

}  // namespace argosy::events
