#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace argosy {

/// An FNV-1a hash (64 bits) that processes compare to check that they agree. Equal input gives
/// equal values on machines of one byte order. It does not protect against forgery.
class Fingerprint {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
  }
  template <typename Number>
  requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
  void add(Number number) {
    std::array<char, sizeof(Number)> bytes{};
    std::memcpy(bytes.data(), &number, sizeof(Number));
    add(std::string_view(bytes.data(), bytes.size()));
  }
  [[nodiscard]] uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace argosy
