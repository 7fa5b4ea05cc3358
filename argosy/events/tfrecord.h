#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy::events {

/// Returns the CRC-32C (Castagnoli) that iSCSI and TensorFlow use.
[[nodiscard]] uint32_t crc32c(std::string_view bytes);

/// Returns `data` in the frame of a TFRecord file: its length (8 bytes, little-endian), the
/// length's masked checksum, the data, the data's masked checksum.
/// Source: TensorFlow 2, core/lib/io/record_writer.h and core/lib/hash/crc32c.h (mask).
[[nodiscard]] std::string tfrecord_frame(std::string_view data);

/// Returns the low `bytes` bytes of a number, the lowest first.
[[nodiscard]] std::string little_endian(uint64_t number, int bytes);

}  // namespace argosy::events
