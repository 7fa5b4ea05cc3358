#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/image/image.h"

namespace argosy::events {

/// A moment of the clock on the wall; a default-constructed one stands for now.
using WallTime = std::chrono::system_clock::time_point;

/// A picture as logs hold it.
struct LogPicture {
  std::vector<uint8_t> png{};
  int height = 0;
  int width = 0;
  int channels = 0;
};

/// Errors: UsageError where the picture is empty or not of u8.
[[nodiscard]] LogPicture log_picture(const image::Image& picture);
/// Errors: UsageError where the bytes are no PNG.
[[nodiscard]] LogPicture log_picture(std::span<const uint8_t> png);

/// `text`, with what is no UTF-8 replaced: readers in Python refuse a whole file for one such byte.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace argosy::events
