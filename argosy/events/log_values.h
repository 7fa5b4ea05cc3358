#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/image/image.h"

namespace argosy::events {

/// A time of the wall clock. A default-constructed one means now.
using WallTime = std::chrono::system_clock::time_point;

/// A picture in the form that logs hold.
struct LogPicture {
  std::vector<uint8_t> png{};
  int height = 0;
  int width = 0;
  int channels = 0;
};

/// Encodes a picture as PNG. Errors: UsageError when the picture is empty or not u8.
[[nodiscard]] LogPicture log_picture(const image::Image& picture);
/// Takes a PNG and reads its size. Errors: UsageError when the bytes are not a PNG.
[[nodiscard]] LogPicture log_picture(std::span<const uint8_t> png);

/// Returns `text` with everything replaced that is not UTF-8, because readers in Python refuse a
/// whole file for one such byte.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace argosy::events
