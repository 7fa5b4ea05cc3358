#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "argosy/image/codecs/inverse_dct.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// One component's part of an area of whole MCUs.
struct PlaneTarget {
  const jpeg_component_info* component = nullptr;
  uint8_t* pixels = nullptr;
  size_t row_bytes = 0;
  int block = DCTSIZE;  ///< rows and columns of a block after its inverse DCT: 8, 4, 2 or 1
  int mcu_height = DCTSIZE;
  int mcu_width = DCTSIZE;
};
using PlaneTargets = std::array<PlaneTarget, 3>;

/// Turns the coefficients of MCUs into pixels of planes: as libjpeg would, mostly by its inverse
/// DCTs. Blocks without AC coefficients, a third of many pictures' chroma, are only filled, and
/// full-size blocks go two by two where the machine has AVX2.
class BlockWriter final {
 public:
  /// `info` has started to decompress; both must outlive this.
  BlockWriter(jpeg_decompress_struct& info, const PlaneTargets& targets);

  [[nodiscard]] int blocks() const { return count_; }  ///< of an MCU

  /// The MCU in `row` and `column` of the area. Block i has AC coefficients where bit i is set.
  void write(int row, int column, int16_t* const* blocks, uint32_t with_ac) const;

 private:
  struct Slot {  // one block of an MCU
    const PlaneTarget* target = nullptr;
    size_t offset = 0;    // from the MCU's first pixel
    bool paired = false;  // with the next
    QuantaPair quanta{};
  };
  void pair_slots();
  void write_one(const Slot& slot, uint8_t* to, int16_t* block, bool ac) const;

  jpeg_decompress_struct& info_;
  std::array<Slot, D_MAX_BLOCKS_IN_MCU> slots_{};
  int count_ = 0;
};

}  // namespace argosy::image::codecs
