#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "argosy/image/codec.h"
#include "argosy/image/image.h"

namespace argosy::recipes::testing {

/// A grey picture of 28 × 28 whose class shows as a bright bar, and whose number shows a little.
inline image::Image bar(int label, int number) {
  image::Image picture({.height = 28, .width = 28}, image::Order::kGray);
  for (int y = 0; y < 28; ++y) {
    auto* row = picture.row<uint8_t>(y);
    for (int x = 0; x < 28; ++x) {
      const bool bright = x / 9 == label;
      row[x] = static_cast<uint8_t>((bright ? 200 : 20) + (x * 7 + y * 5 + number * 13) % 50);
    }
  }
  return picture;
}

/// root/a, root/b, root/c with `each` pictures.
inline void write_classes(const std::filesystem::path& root, int each, int first = 0) {
  for (int label = 0; label < 3; ++label) {
    const std::filesystem::path folder = root / std::string(1, static_cast<char>('a' + label));
    std::filesystem::create_directories(folder);
    for (int i = first; i < first + each; ++i) {
      image::write_file((folder / (std::to_string(i) + ".png")).string(),
                        image::encode_png(bar(label, i)));
    }
  }
}

}  // namespace argosy::recipes::testing
