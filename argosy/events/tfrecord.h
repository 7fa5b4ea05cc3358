#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy::events {

/// CRC-32C (Castagnoli), as iSCSI and TensorFlow use it.
[[nodiscard]] uint32_t crc32c(std::string_view bytes);

/// `data` in the frame of a TFRecord file: its length (8 bytes, little-endian), the length's masked
/// checksum, the data, its masked checksum.
/// Source: TensorFlow 2, core/lib/io/record_writer.h and core/lib/hash/crc32c.h (mask).
[[nodiscard]] std::string tfrecord_frame(std::string_view data);

/// The low `bytes` bytes of a number, least first.
[[nodiscard]] std::string little_endian(uint64_t number, int bytes);

}  // namespace argosy::events
