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

/// Reads the Huffman codes of a sequential JPEG whose components share one scan, as in nearly all
/// files.
///
/// libjpeg checks each byte for a stuffed FF, and looks up each code by itself. JpegScan first
/// removes the stuffing and then reads eight bytes at once. One look gives a code with its value,
/// or two codes if values are not needed. Blocks outside a box cost a third of libjpeg's time.
///
/// It reads sound data only. Anything unusual ends with false (fill bytes, a restart marker that is
/// missing or has the wrong number, an invalid code, too many coefficients, too few bits). The
/// caller then starts again with libjpeg, which handles it. Coefficients equal libjpeg's. Not
/// thread-safe. Memory: a copy of the compressed bytes, kept for the next picture.
class JpegScan final {
 public:
  /// Begins the scan whose header `info` has just read. `data` is what follows. False: see above.
  [[nodiscard]] bool start(const jpeg_decompress_struct& info, std::span<const uint8_t> data);

  /// Reads the next MCU. blocks[i] must be zero and get the coefficients in natural order; a block
  /// that is reduced to one pixel gets only the first.
  [[nodiscard]] bool read(int16_t* const* blocks);

  /// Skips `count` MCUs.
  [[nodiscard]] bool skip(int64_t count);

  /// True if more bits were read than there were.
  [[nodiscard]] bool ran_out() const;

 private:
  /// The next bits, from the top of `window`. Only the first `count` are accounted for.
  struct Bits {
    const uint8_t* next = nullptr;
    uint64_t window = 0;
    int count = 0;
  };
  struct Part {  // one block of an MCU
    const HuffmanTable* dc = nullptr;
    const HuffmanTable* ac = nullptr;
    int component = 0;
    bool wants_ac = true;  // false: reduced to one pixel, its first coefficient only
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
  int64_t interval_ = 0;  // MCUs of a segment; 0: there is one segment
  int64_t left_ = 0;      // MCUs left in this segment
  Bits bits_{};
};

}  // namespace argosy::image::codecs
