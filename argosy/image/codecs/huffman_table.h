#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// A Huffman code and the value after it.
struct HuffmanStep {
  int16_t value = 0;
  uint8_t advance = 0;  ///< AC: zeros before it and itself; kEndOfBlock: no more coefficients
  uint8_t bits = 0;     ///< bits of the code and the value; 0: they are no code
};

/// A Huffman table of a baseline JPEG, as tables over the next kLook bits. A value's own bits
/// follow its code, and most codes are short, so one look nearly always gives both, and often those
/// of the next coefficient too. Entries are packed with the number of bits lowest, because the next
/// look waits for it.
class HuffmanTable final {
 public:
  static constexpr int kLook = 11;
  static constexpr int kDcLook = 9;  // values stand alone there, so it needs less memory
  static constexpr int kEndOfBlock = 128;
  static constexpr int kSkippedEnd = 1024;
  enum class Kind : uint8_t { kDc, kAc };

  /// Returns one or two steps. Zero: they have more than kLook bits, or there is no code.
  struct Pair {
    uint64_t packed;
    [[nodiscard]] uint32_t bits() const { return static_cast<uint8_t>(packed); }
    [[nodiscard]] uint32_t first_bits() const { return static_cast<uint8_t>(packed >> 8); }
    [[nodiscard]] uint32_t advance() const { return static_cast<uint8_t>(packed >> 16); }
    [[nodiscard]] uint32_t first_advance() const { return static_cast<uint8_t>(packed >> 24); }
    [[nodiscard]] int16_t first_value() const { return static_cast<int16_t>(packed >> 32); }
    [[nodiscard]] int16_t last_value() const { return static_cast<int16_t>(packed >> 48); }
  };
  /// As many steps as the bits hold, for callers that need no values.
  struct Skip {
    uint32_t packed;
    [[nodiscard]] uint32_t bits() const { return static_cast<uint8_t>(packed); }
    /// Their sum, plus kSkippedEnd when the block ends with them.
    [[nodiscard]] uint32_t advance() const { return packed >> 8; }
  };

  /// Makes the table. Does nothing if it is the same as before, because most files use the
  /// standard's. False: the codes are not valid.
  [[nodiscard]] bool build(const JHUFF_TBL& source, Kind kind);

  /// For a DC table. `window` has the next bits at its top. bits = 0: as in Pair.
  [[nodiscard]] HuffmanStep dc(uint64_t window) const { return dc_[window >> (64 - kDcLook)]; }
  /// For an AC table.
  [[nodiscard]] Pair pair(uint64_t window) const { return pairs_[window >> (64 - kLook)]; }
  [[nodiscard]] Skip skip(uint64_t window) const { return skips_[window >> (64 - kLook)]; }
  /// Returns one step of any length, which is at most 31 bits.
  [[nodiscard]] HuffmanStep step(uint64_t window) const;

 private:
  struct Code {
    uint8_t bits = 0;
    uint8_t symbol = 0;
  };
  [[nodiscard]] bool assign_codes();
  [[nodiscard]] HuffmanStep finish(Code code, uint64_t window) const;
  static constexpr size_t kEntries = size_t{1} << kLook;
  using Steps = std::array<HuffmanStep, kEntries>;
  void fill_steps(Steps& steps) const;
  void fill_dc(const Steps& steps);
  void fill_pairs(const Steps& steps);
  void fill_skips(const Steps& steps);

  std::array<HuffmanStep, size_t{1} << kDcLook> dc_{};
  std::array<Pair, kEntries> pairs_{};
  std::array<Skip, kEntries> skips_{};
  std::array<Code, kEntries> codes_{};
  std::array<uint32_t, 17>
      end_{};  // by length: 16 bits below it begin with a code of at most that length
  std::array<int32_t, 17> first_{};  // by length: index of symbols_ minus code
  std::array<uint8_t, 17> counts_{};
  std::array<uint8_t, 256> symbols_{};
  Kind kind_ = Kind::kDc;
  bool built_ = false;
};

}  // namespace argosy::image::codecs
