#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include "argosy/image/codecs/huffman_table.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// Reads the Huffman codes of a sequential JPEG whose components share one scan: nearly all of
/// them.
///
/// libjpeg looks at each byte for a stuffed FF and at each code for its own; here the bytes are
/// freed of stuffing first, bits come in by eight bytes, and one look gives a code with its value,
/// or, where values are not wanted, two codes at once. Blocks outside of a box cost a third of
/// libjpeg's time.
///
/// It is for sound data: whatever is unusual (fill bytes, a restart marker that is missing or of
/// the wrong number, no code, too many coefficients, too few bits) ends with false, and then
/// libjpeg, which knows what to do, is asked from the start. Coefficients are libjpeg's. Not
/// thread-safe. Memory: a copy of the compressed bytes, kept for the next picture.
class JpegScan final {
 public:
  /// For the scan that `info` has just read the header of. `data`: what follows. False: see above.
  [[nodiscard]] bool start(const jpeg_decompress_struct& info, std::span<const uint8_t> data);

  /// Reads the next MCU: blocks[i], which are zero, get the coefficients, in natural order; only
  /// the first where the block is reduced to one pixel.
  [[nodiscard]] bool read(int16_t* const* blocks);

  /// Goes on by `count` MCUs.
  [[nodiscard]] bool skip(int64_t count);

  /// Have more bits been read than there were?
  [[nodiscard]] bool ran_out() const;

 private:
  /// Bits to come, from the top of `window`; those below `count` are not accounted for yet.
  struct Bits {
    const uint8_t* next = nullptr;
    uint64_t window = 0;
    int count = 0;
  };
  struct Part {  // one block of an MCU
    const HuffmanTable* dc = nullptr;
    const HuffmanTable* ac = nullptr;
    int component = 0;
    bool wants_ac = true;  // false: reduced to one pixel, its first coefficient
  };
  [[nodiscard]] bool build_tables(const jpeg_decompress_struct& info);
  [[nodiscard]] bool unstuff(std::span<const uint8_t> data, bool with_restarts);
  void begin_segment(size_t segment);
  [[nodiscard]] bool next_segment();
  [[nodiscard]] bool begin_mcu();
  [[nodiscard]] bool skip_one();
  [[nodiscard]] int64_t bits_left() const;

  std::array<HuffmanTable, NUM_HUFF_TBLS> dc_{};
  std::array<HuffmanTable, NUM_HUFF_TBLS> ac_{};
  std::array<Part, D_MAX_BLOCKS_IN_MCU> parts_{};
  int parts_in_mcu_ = 0;
  std::array<uint32_t, MAX_COMPS_IN_SCAN> predictions_{};

  std::unique_ptr<uint8_t[]> clean_{};
  size_t capacity_ = 0;
  std::vector<size_t> segment_ends_{};  // in clean_
  size_t segment_ = 0;
  int64_t interval_ = 0;  // MCUs of a segment; 0: one segment is all
  int64_t left_ = 0;      // of this segment
  Bits bits_{};
};

}  // namespace argosy::image::codecs
