#include "argosy/image/codecs/huffman_table.h"

#include <algorithm>
#include <cstring>

namespace argosy::image::codecs {
namespace {

HuffmanTable::Pair pack(HuffmanStep first, HuffmanStep second) {
  const HuffmanStep& last = second.bits > 0 ? second : first;
  uint64_t packed = static_cast<uint8_t>(first.bits + second.bits);
  packed |= uint64_t{first.bits} << 8;
  packed |= uint64_t{static_cast<uint8_t>(first.advance + second.advance)} << 16;
  packed |= uint64_t{first.advance} << 24;
  packed |= uint64_t{static_cast<uint16_t>(first.value)} << 32;
  packed |= uint64_t{static_cast<uint16_t>(last.value)} << 48;
  return {packed};
}

}  // namespace

bool HuffmanTable::build(const JHUFF_TBL& source, Kind kind) {
  if (built_ && kind == kind_ && std::memcmp(counts_.data() + 1, source.bits + 1, 16) == 0 &&
      std::memcmp(symbols_.data(), source.huffval, symbols_.size()) == 0) {
    return true;
  }
  built_ = false;
  kind_ = kind;
  std::copy_n(source.bits, counts_.size(), counts_.begin());
  std::copy_n(source.huffval, symbols_.size(), symbols_.begin());
  if (!assign_codes()) {
    return false;
  }
  Steps steps;
  fill_steps(steps);
  if (kind == Kind::kDc) {
    fill_dc(steps);
  } else {
    fill_pairs(steps);
    fill_skips(steps);
  }
  built_ = true;
  return true;
}

// Codes of one length follow each other; the first of a length is twice what follows the last of
// the length before. Source: ITU-T T.81, annex C.
bool HuffmanTable::assign_codes() {
  codes_.fill({});
  uint32_t code = 0;
  int32_t index = 0;
  for (uint32_t bits = 1; bits <= 16; ++bits) {
    first_[bits] = index - static_cast<int32_t>(code);
    for (int i = 0; i < counts_[bits]; ++i, ++code, ++index) {
      if (code >= 1U << bits || index >= 256) {
        return false;
      }
      if (bits <= kLook) {
        std::fill_n(codes_.begin() + (code << (kLook - bits)),
                    size_t{1} << (kLook - bits),
                    Code{static_cast<uint8_t>(bits), symbols_[static_cast<size_t>(index)]});
      }
    }
    end_[bits] = code << (16 - bits);
    code <<= 1;
  }
  return true;
}

/// The step that begins with `code`, where as many bits as it has may be used.
HuffmanStep HuffmanTable::finish(Code code, uint64_t window) const {
  const int size = kind_ == Kind::kDc ? std::min<int>(code.symbol, 15) : code.symbol & 15;
  HuffmanStep step;
  step.bits = static_cast<uint8_t>(code.bits + size);
  if (size > 0) {
    const auto raw = static_cast<int32_t>(window << code.bits >> (64 - size));
    // Values with a leading 0 are negative: T.81, figure F.12.
    step.value = static_cast<int16_t>(raw >> (size - 1) != 0 ? raw : raw - (1 << size) + 1);
    step.advance = static_cast<uint8_t>((code.symbol >> 4) + 1);
  } else {
    step.advance = code.symbol == 0xf0 ? 16 : kEndOfBlock;
  }
  return step;
}

void HuffmanTable::fill_steps(Steps& steps) const {
  for (size_t i = 0; i < kEntries; ++i) {
    const HuffmanStep step =
        codes_[i].bits > 0 ? finish(codes_[i], uint64_t{i} << (64 - kLook)) : HuffmanStep{};
    steps[i] = step.bits <= kLook ? step : HuffmanStep{};
  }
}

void HuffmanTable::fill_dc(const Steps& steps) {
  for (size_t i = 0; i < dc_.size(); ++i) {
    const HuffmanStep step = steps[i << (kLook - kDcLook)];
    dc_[i] = step.bits <= kDcLook ? step : HuffmanStep{};
  }
}

void HuffmanTable::fill_pairs(const Steps& steps) {
  for (size_t i = 0; i < kEntries; ++i) {
    const HuffmanStep first = steps[i];
    const HuffmanStep second = steps[(i << first.bits) & (kEntries - 1)];
    const bool one =
        first.bits == 0 || first.advance == kEndOfBlock || first.bits + second.bits > kLook;
    pairs_[i] = pack(first, one ? HuffmanStep{} : second);
  }
}

void HuffmanTable::fill_skips(const Steps& steps) {
  for (size_t i = 0; i < kEntries; ++i) {
    uint32_t bits = 0;
    uint32_t advance = 0;
    while (advance < kSkippedEnd) {
      const HuffmanStep step = steps[(i << bits) & (kEntries - 1)];
      if (step.bits == 0 || bits + step.bits > kLook) {
        break;
      }
      bits += step.bits;
      advance += step.advance == kEndOfBlock ? kSkippedEnd : step.advance;
    }
    skips_[i] = {advance << 8 | bits};
  }
}

HuffmanStep HuffmanTable::step(uint64_t window) const {
  Code code = codes_[window >> (64 - kLook)];
  if (code.bits == 0) {
    const auto next = static_cast<uint32_t>(window >> 48);
    uint32_t bits = kLook + 1;
    while (bits <= 16 && next >= end_[bits]) {
      ++bits;
    }
    if (bits > 16) {
      return {};
    }
    const int32_t index = first_[bits] + static_cast<int32_t>(next >> (16 - bits));
    code = {static_cast<uint8_t>(bits), symbols_[static_cast<size_t>(index) & 255]};
  }
  return finish(code, window);
}

}  // namespace argosy::image::codecs
