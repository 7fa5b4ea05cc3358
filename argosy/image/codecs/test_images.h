#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/image/codec.h"

namespace argosy::image {

/// A file of tests/data/images.
inline std::string test_image(const std::string& name) {
  return std::string(ARGOSY_TEST_DATA) + "/images/" + name;
}

inline std::vector<uint8_t> test_bytes(const std::string& name) {
  return read_file(test_image(name));
}

/// What Pillow makes of a file: a line of golden.txt. make.py says how.
struct Golden {
  std::string file;
  std::string mode;
  int height = 0;
  int width = 0;
  int channels = 0;
  int bound = 0;
  std::vector<uint8_t> pixels;  // empty: only their checksum is known
  uint32_t crc = 0;
};

inline std::vector<Golden> goldens() {
  std::vector<uint8_t> all;
  gzFile packed = gzopen(test_image("golden.bin.gz").c_str(), "rb");
  for (int count = 1; count > 0;) {
    const size_t have = all.size();
    all.resize(have + (size_t{1} << 16));
    count = gzread(packed, all.data() + have, 1U << 16);
    all.resize(have + static_cast<size_t>(std::max(count, 0)));
  }
  gzclose(packed);
  std::vector<Golden> found;
  std::ifstream index(test_image("golden.txt"));
  for (std::string line; std::getline(index, line);) {
    std::istringstream words(line);
    Golden golden;
    int64_t offset = 0;
    words >> golden.file >> golden.mode >> golden.height >> golden.width >> golden.channels >>
        golden.bound >> offset;
    if (offset < 0) {
      words >> golden.crc;
    } else {
      const auto count = static_cast<int64_t>(golden.height) * golden.width * golden.channels;
      golden.pixels.assign(all.begin() + offset, all.begin() + offset + count);
    }
    found.push_back(std::move(golden));
  }
  return found;
}

/// The largest difference of a channel; 256 when the sizes differ.
inline int largest_difference(const Image& image, const Golden& golden) {
  if (image.height() != golden.height || image.width() != golden.width ||
      image.channels() != golden.channels) {
    return 256;
  }
  const auto* pixels = reinterpret_cast<const uint8_t*>(image.data());
  if (golden.pixels.empty()) {
    const auto crc = crc32(0, pixels, static_cast<uInt>(image.total_bytes()));
    return crc == golden.crc ? 0 : 255;
  }
  int largest = 0;
  for (size_t i = 0; i < golden.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(pixels[i] - golden.pixels[i]));
  }
  return largest;
}

/// A folder of a test, removed with the object.
class TestFolder final {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "argosy_image_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const {
    return (path_ / name).string();
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace argosy::image
