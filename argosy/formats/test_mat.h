#pragma once

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace argosy::formats {

/// Writes MATLAB 5 files as the format's description has them, independently of the reader.
class MatWriter final {
 public:
  explicit MatWriter(std::endian order) : order_(order) {}

  template <typename Number>
  [[nodiscard]] std::string number(Number value) const {
    std::string bytes(sizeof(Number), '\0');
    std::memcpy(bytes.data(), &value, sizeof(Number));
    if (order_ != std::endian::native) {
      std::reverse(bytes.begin(), bytes.end());
    }
    return bytes;
  }
  template <typename Number>
  [[nodiscard]] std::string numbers(const std::vector<Number>& values) const {
    std::string bytes;
    for (const Number value : values) {
      bytes += number(value);
    }
    return bytes;
  }
  [[nodiscard]] std::string element(uint32_t type, const std::string& data) const {
    if (data.size() <= 4 && !data.empty() && small) {
      return number(static_cast<uint32_t>(data.size() << 16 | type)) + padded(data, 4);
    }
    return number(type) + number(static_cast<uint32_t>(data.size())) + padded(data, 8);
  }
  [[nodiscard]] std::string matrix(uint32_t flags,
                                   const std::vector<int32_t>& dims,
                                   const std::string& name,
                                   uint32_t type,
                                   const std::string& data) const {
    return element(14,
                   element(6, number(flags) + number(uint32_t{0})) + element(5, numbers(dims)) +
                       element(1, name) + element(type, data));
  }
  [[nodiscard]] std::string compressed(const std::string& data) const {
    std::string packed(compressBound(data.size()), '\0');
    uLongf size = packed.size();
    compress(reinterpret_cast<Bytef*>(packed.data()),
             &size,
             reinterpret_cast<const Bytef*>(data.data()),
             data.size());
    packed.resize(size);
    return number(uint32_t{15}) + number(static_cast<uint32_t>(size)) + packed;
  }
  [[nodiscard]] std::string header() const {
    std::string text = "MATLAB 5.0 MAT-file, written by a test";
    text.resize(124, ' ');
    return text + number(uint16_t{0x0100}) + number(static_cast<uint16_t>('M' << 8 | 'I'));
  }

  bool small = true;  // elements of up to 4 bytes in the short form

 private:
  static std::string padded(std::string data, size_t unit) {
    data.resize((data.size() + unit - 1) / unit * unit);
    return data;
  }
  std::endian order_;
};

}  // namespace argosy::formats
