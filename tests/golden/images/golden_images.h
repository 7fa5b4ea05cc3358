#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/image/image.h"

// Reads what tests/golden/images/generate_*.py wrote; golden_file.py describes the form.
namespace argosy::image::golden {

/// One line: a call, and what the peer made of it.
struct Case {
  std::string line{};
  std::string operation{};
  std::map<std::string, std::string> words{};
  Size size{};  ///< of the result
  uint64_t digest = 0;
  std::string raw{};  ///< the result itself, where a bound is allowed

  [[nodiscard]] bool has(const std::string& key) const { return words.count(key) != 0; }
  [[nodiscard]] const std::string& word(const std::string& key) const { return words.at(key); }
  [[nodiscard]] double number(const std::string& key) const { return std::stod(words.at(key)); }
  [[nodiscard]] int whole(const std::string& key) const { return std::stoi(words.at(key)); }
  /// "1,2.5" as {1, 2.5}.
  [[nodiscard]] std::vector<double> numbers(const std::string& key) const {
    std::vector<double> result;
    std::stringstream text(words.at(key));
    for (std::string item; std::getline(text, item, ',');) {
      result.push_back(std::stod(item));
    }
    return result;
  }
  [[nodiscard]] Size pixels(const std::string& key) const { return parse_size(words.at(key)); }
  static Size parse_size(const std::string& text) {
    const size_t x = text.find('x');
    return {std::stoi(text.substr(0, x)), std::stoi(text.substr(x + 1))};
  }
};

inline Order order_of(const std::string& name) {
  return name == "gray"  ? Order::kGray
         : name == "rgb" ? Order::kRgb
         : name == "bgr" ? Order::kBgr
                         : Order::kRgba;
}

inline uint8_t value_of(const std::string& pattern, int y, int x, int c, uint32_t place) {
  if (pattern == "cube") {  // 18 steps of red, of green and of blue
    const int step = c == 0 ? y : c == 1 ? x / 18 : x % 18;
    return static_cast<uint8_t>(15 * step);
  }
  if (pattern == "one") {
    return 7;
  }
  if (pattern == "dull") {
    return static_cast<uint8_t>(value_of("noise", y, x, c, place) / 4 + 40);
  }
  if (pattern == "smooth") {
    return static_cast<uint8_t>(y * 3 + x * 2 + c * 40 + y * x / 16);
  }
  uint32_t value = place * 2654435761U + 12345U;
  value ^= value >> 15;
  value *= 2246822519U;
  return static_cast<uint8_t>(value ^ (value >> 13));
}

/// The pictures of golden_file.py and generate_color.py.
inline Image picture(const std::string& pattern, Size size, Order order, Type type) {
  Image image(size, order, type);
  uint32_t place = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int i = 0; i < size.width * image.channels(); ++i, ++place) {
      const uint8_t value = value_of(pattern, y, i / image.channels(), i % image.channels(), place);
      if (type == Type::kU8) {
        image.row<uint8_t>(y)[i] = value;
      } else {
        image.row<float>(y)[i] = static_cast<float>(value) / 255.0F;
      }
    }
  }
  return image;
}

inline Image picture(const Case& from) {
  return picture(from.word("picture"),
                 from.pixels("size"),
                 order_of(from.word("order")),
                 from.word("type") == "u8" ? Type::kU8 : Type::kF32);
}

/// The lines of tests/golden/images/NAME.txt.
inline std::vector<Case> read(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(ARGOSY_GOLDEN_DIR) / "images";
  std::ifstream bytes_file(folder / (name + ".bin"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(bytes_file), {}};
  std::ifstream text(folder / (name + ".txt"));
  std::vector<Case> cases;
  for (std::string line; std::getline(text, line);) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    Case one;
    one.line = line;
    std::stringstream words(line);
    words >> one.operation;
    std::string word;
    while (words >> word && word != ":") {
      const size_t equals = word.find('=');
      one.words[word.substr(0, equals)] = word.substr(equals + 1);
    }
    std::string size, kind, value;
    words >> size >> kind >> value;
    one.size = Case::parse_size(size);
    if (kind == "fnv") {
      one.digest = std::stoull(value, nullptr, 16);
    } else {
      one.raw = bytes.substr(std::stoull(value));
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

inline uint64_t digest_of(const Image& image) {
  uint64_t digest = 0xCBF29CE484222325;
  for (size_t i = 0; i < image.total_bytes(); ++i) {
    digest = (digest ^ static_cast<uint64_t>(image.data()[i])) * 0x100000001B3;
  }
  return digest;
}

/// Fails unless the image is the golden one, bit for bit.
inline void expect_same(const Case& golden, const Image& image) {
  EXPECT_EQ(image.size(), golden.size) << golden.line;
  EXPECT_EQ(digest_of(image), golden.digest) << golden.line;
}

/// How far an image is from the golden one.
struct Difference {
  double most = 0;   ///< of any channel of any pixel
  double share = 0;  ///< of the channels that differ at all
};

inline Difference difference(const Case& golden, const Image& image) {
  EXPECT_EQ(image.size(), golden.size) << golden.line;
  if (image.size() != golden.size || golden.raw.size() < image.total_bytes()) {
    ADD_FAILURE() << "nothing to compare: " << golden.line;
    return {1e300, 1};
  }
  Difference result;
  const size_t count = image.total_bytes() / bytes_of(image.type());
  for (size_t i = 0; i < count; ++i) {
    double ours = 0, theirs = 0;
    if (image.type() == Type::kU8) {
      ours = static_cast<uint8_t>(image.data()[i]);
      theirs = static_cast<uint8_t>(golden.raw[i]);
    } else {
      float value = 0;
      std::memcpy(&value, image.data() + i * sizeof value, sizeof value);
      ours = value;
      std::memcpy(&value, golden.raw.data() + i * sizeof value, sizeof value);
      theirs = value;
    }
    const double apart = std::abs(ours - theirs);
    result.most = std::max(result.most, apart);
    result.share += apart != 0 ? 1.0 / static_cast<double>(count) : 0.0;
  }
  return result;
}

}  // namespace argosy::image::golden
