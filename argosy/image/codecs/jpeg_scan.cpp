#include "argosy/image/codecs/jpeg_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace argosy::image::codecs {
namespace {

// Zeros behind the data, so that nobody need ask within an MCU whether there is more: it has at
// most 10 blocks of 64 codes of 16 bits with as many behind each.
constexpr size_t kPad = size_t{10} * 64 * 4 + 64;

// Zigzag order to natural order, then the last place for what lies beyond the end of the block:
// where an end-of-block writes its 0, which changes nothing.
constexpr auto kNatural = [] {
  std::array<uint8_t, 64 + 16 + HuffmanTable::kEndOfBlock> order{};
  int row = 0;
  int column = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i < 64 ? static_cast<uint8_t>(row * 8 + column) : uint8_t{63};
    const bool up = (row + column) % 2 == 0;
    if (up ? column == 7 : row == 7) {
      ++(up ? row : column);
    } else if (up ? row == 0 : column == 0) {
      ++(up ? column : row);
    } else {
      row += up ? -1 : 1;
      column += up ? 1 : -1;
    }
  }
  return order;
}();

uint64_t load_be64(const uint8_t* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

/// Tops up to 56 bits and more, without a branch. Source: F. Giesen, "Reading bits in far too many
/// ways", part 2, variant 4.
template <typename Bits>
void refill(Bits& bits) {
  bits.window |= load_be64(bits.next) >> bits.count;
  bits.next += (63 - bits.count) >> 3;
  bits.count |= 56;
}

// In shifts the lower 6 bits count.
template <typename Bits>
void consume(Bits& bits, uint32_t count) {
  bits.window <<= count & 63;
  bits.count -= static_cast<int>(count);
}

/// One step, however long; bits = 0: no code.
template <typename Bits>
HuffmanStep take(Bits& bits, const HuffmanTable& table) {
  refill(bits);
  const HuffmanStep step = table.step(bits.window);
  consume(bits, step.bits);
  return step;
}

// The looks that one refill, of 56 bits, is enough for.
constexpr int kLooks = 56 / HuffmanTable::kLook;
static_assert(HuffmanTable::kDcLook <= HuffmanTable::kLook);

/// A DC difference. Leaves bits for kLooks - 1 looks.
template <typename Bits>
bool take_dc(Bits& bits, const HuffmanTable& table, uint32_t& prediction) {
  refill(bits);
  HuffmanStep step = table.dc(bits.window);
  if (step.bits > 0) [[likely]] {
    consume(bits, step.bits);
    prediction += static_cast<uint32_t>(step.value);
    return true;
  }
  step = take(bits, table);
  prediction += static_cast<uint32_t>(step.value);
  refill(bits);
  return step.bits > 0;
}

/// The block is full: its last coefficient was the first of a pair, so the second is of the next
/// block.
template <typename Bits>
void give_back(Bits& bits, uint64_t window, HuffmanTable::Pair pair, int16_t* block) {
  bits.window = window << pair.first_bits();
  bits.count += static_cast<int>(pair.bits() - pair.first_bits());
  block[DCTSIZE2 - 1] = pair.first_value();
}

/// The other coefficients of a block, one or two at a look.
template <typename Bits>
bool take_ac(Bits& bits, const HuffmanTable& table, int16_t* block) {
  uint32_t k = 1;
  int looks = kLooks - 1;
  for (;; refill(bits), looks = kLooks) {
    for (; looks > 0; --looks) {
      const uint64_t before = bits.window;
      const HuffmanTable::Pair pair = table.pair(before);
      if (pair.bits() == 0) [[unlikely]] {
        break;
      }
      consume(bits, pair.bits());
      block[kNatural[k + pair.first_advance() - 1]] = pair.first_value();
      k += pair.advance();
      block[kNatural[k - 1]] = pair.last_value();
      if (k >= DCTSIZE2) {
        if (k == DCTSIZE2 || (k > HuffmanTable::kEndOfBlock &&
                              k < HuffmanTable::kEndOfBlock + DCTSIZE2)) [[likely]] {
          return true;
        }
        if (k - pair.advance() + pair.first_advance() != DCTSIZE2) {
          return false;  // a coefficient behind the last
        }
        give_back(bits, before, pair, block);
        return true;
      }
    }
    if (looks > 0) {
      const HuffmanStep step = take(bits, table);
      k += step.advance;
      block[kNatural[k - 1]] = step.value;
      if (step.bits == 0) {
        return false;
      }
      if (k >= DCTSIZE2) {
        return k == DCTSIZE2 || k > HuffmanTable::kEndOfBlock;
      }
    }
  }
}

/// Goes over the other coefficients of a block, several at a look. The last look may reach into the
/// next block, whose codes are others: then one at a time.
template <typename Bits>
bool skip_ac(Bits& bits, const HuffmanTable& table) {
  constexpr uint32_t kEnd = HuffmanTable::kSkippedEnd;
  uint32_t k = 1;
  int looks = kLooks - 1;
  for (;; refill(bits), looks = kLooks) {
    for (; looks > 0; --looks) {
      const HuffmanTable::Skip skip = table.skip(bits.window);
      const uint32_t next = k + skip.advance();
      if (skip.bits() == 0) [[unlikely]] {
        break;
      }
      if (next >= DCTSIZE2) {
        if (next == DCTSIZE2 || (next > kEnd && next < kEnd + DCTSIZE2)) [[likely]] {
          consume(bits, skip.bits());
          return true;
        }
        break;
      }
      consume(bits, skip.bits());
      k = next;
    }
    if (looks > 0) {
      const HuffmanStep step = take(bits, table);
      if (step.bits == 0) [[unlikely]] {
        return false;
      }
      k += step.advance;
      if (k >= DCTSIZE2) {
        return k == DCTSIZE2 || k > HuffmanTable::kEndOfBlock;
      }
    }
  }
}

}  // namespace

bool JpegScan::start(const jpeg_decompress_struct& info, std::span<const uint8_t> data) {
  if (info.progressive_mode != FALSE || info.arith_code != FALSE || info.data_precision != 8 ||
      info.comps_in_scan != info.num_components || !build_tables(info) ||
      !unstuff(data, info.restart_interval > 0)) {
    return false;
  }
  interval_ = info.restart_interval;
  begin_segment(0);
  return true;
}

bool JpegScan::build_tables(const jpeg_decompress_struct& info) {
  parts_in_mcu_ = info.blocks_in_MCU;
  for (int i = 0; i < info.comps_in_scan; ++i) {
    const jpeg_component_info& component = *info.cur_comp_info[i];
    const int dc = component.dc_tbl_no;
    const int ac = component.ac_tbl_no;
    if (dc < 0 || dc >= NUM_HUFF_TBLS || ac < 0 || ac >= NUM_HUFF_TBLS ||
        info.dc_huff_tbl_ptrs[dc] == nullptr || info.ac_huff_tbl_ptrs[ac] == nullptr ||
        !dc_[static_cast<size_t>(dc)].build(*info.dc_huff_tbl_ptrs[dc], HuffmanTable::Kind::kDc) ||
        !ac_[static_cast<size_t>(ac)].build(*info.ac_huff_tbl_ptrs[ac], HuffmanTable::Kind::kAc)) {
      return false;
    }
  }
  for (int i = 0; i < parts_in_mcu_; ++i) {
    const int component = info.MCU_membership[i];
    const jpeg_component_info& owner = *info.cur_comp_info[component];
    parts_[static_cast<size_t>(i)] = {&dc_[static_cast<size_t>(owner.dc_tbl_no)],
                                      &ac_[static_cast<size_t>(owner.ac_tbl_no)],
                                      component,
                                      scaled_size(owner) > 1};
  }
  return true;
}

// In a scan FF is followed by 00, which is dropped, or is a marker: of a restart, or of what
// follows the scan. Segments are told apart by their ends.
bool JpegScan::unstuff(std::span<const uint8_t> data, bool with_restarts) {
  if (capacity_ < data.size() + kPad) {
    capacity_ = data.size() + data.size() / 4 + kPad;
    clean_.reset(new uint8_t[capacity_]);  // NOLINT(modernize-make-unique): that would zero it
  }
  segment_ends_.clear();
  const uint8_t* in = data.data();
  const uint8_t* const end = in + data.size();
  uint8_t* out = clean_.get();
  while (in < end) {
    const auto* marker =
        static_cast<const uint8_t*>(std::memchr(in, 0xff, static_cast<size_t>(end - in)));
    const uint8_t* const stop = marker != nullptr ? marker : end;
    out = std::copy(in, stop, out);
    if (marker == nullptr || marker + 1 == end) {
      break;
    }
    const uint8_t code = marker[1];
    in = marker + 2;
    if (code == 0) {
      *out++ = 0xff;
    } else if (with_restarts && code >= JPEG_RST0 && code <= JPEG_RST0 + 7) {
      if ((segment_ends_.size() & 7) != static_cast<size_t>(code - JPEG_RST0)) {
        return false;
      }
      segment_ends_.push_back(static_cast<size_t>(out - clean_.get()));
    } else if (code == 0xff) {
      return false;  // a fill byte
    } else {
      break;
    }
  }
  segment_ends_.push_back(static_cast<size_t>(out - clean_.get()));
  std::memset(out, 0, kPad);
  return true;
}

void JpegScan::begin_segment(size_t segment) {
  segment_ = segment;
  bits_ = {clean_.get() + (segment == 0 ? 0 : segment_ends_[segment - 1]), 0, 0};
  left_ = interval_ > 0 ? interval_ : std::numeric_limits<int64_t>::max();
  predictions_.fill(0);
}

int64_t JpegScan::bits_left() const {
  const int64_t read = (bits_.next - clean_.get()) * 8 - bits_.count;
  return static_cast<int64_t>(segment_ends_[segment_]) * 8 - read;
}

bool JpegScan::ran_out() const {
  return bits_left() < 0;
}

/// At the end of a segment less than a byte may be left.
bool JpegScan::next_segment() {
  const int64_t left = bits_left();
  if (left < 0 || left >= 8 || segment_ + 1 >= segment_ends_.size()) {
    return false;
  }
  begin_segment(segment_ + 1);
  return true;
}

bool JpegScan::begin_mcu() {
  if (left_ == 0 && !next_segment()) {
    return false;
  }
  --left_;
  return bits_.next <= clean_.get() + segment_ends_.back() + sizeof(uint64_t);
}

bool JpegScan::read(int16_t* const* blocks) {
  if (!begin_mcu()) {
    return false;
  }
  Bits bits = bits_;
  for (int i = 0; i < parts_in_mcu_; ++i) {
    const Part& part = parts_[static_cast<size_t>(i)];
    uint32_t& prediction = predictions_[static_cast<size_t>(part.component)];
    const bool dc = take_dc(bits, *part.dc, prediction);
    blocks[i][0] = static_cast<int16_t>(prediction);
    const bool ac = part.wants_ac ? take_ac(bits, *part.ac, blocks[i]) : skip_ac(bits, *part.ac);
    if (!dc || !ac) [[unlikely]] {
      return false;
    }
  }
  bits_ = bits;
  return true;
}

bool JpegScan::skip_one() {
  if (!begin_mcu()) {
    return false;
  }
  Bits bits = bits_;
  for (int i = 0; i < parts_in_mcu_; ++i) {
    const Part& part = parts_[static_cast<size_t>(i)];
    const bool dc = take_dc(bits, *part.dc, predictions_[static_cast<size_t>(part.component)]);
    if (!dc || !skip_ac(bits, *part.ac)) [[unlikely]] {
      return false;
    }
  }
  bits_ = bits;
  return true;
}

bool JpegScan::skip(int64_t count) {
  while (count > 0) {
    if (left_ == 0 && !next_segment()) {
      return false;
    }
    if (interval_ > 0 && count >= left_) {  // a whole segment, unread
      count -= left_;
      left_ = 0;
      bits_ = {clean_.get() + segment_ends_[segment_], 0, 0};
      continue;
    }
    if (!skip_one()) {
      return false;
    }
    --count;
  }
  return true;
}

}  // namespace argosy::image::codecs
