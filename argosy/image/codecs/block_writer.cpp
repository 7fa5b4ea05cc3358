#include "argosy/image/codecs/block_writer.h"

#include <algorithm>
#include <cstring>

namespace argosy::image::codecs {
namespace {

template <int kSize>
void fill(uint8_t* to, size_t row_bytes, int value) {
  const uint64_t eight = 0x0101010101010101U * static_cast<uint64_t>(value);
  for (int y = 0; y < kSize; ++y, to += row_bytes) {
    std::memcpy(to, &eight, kSize);
  }
}

/// A block without AC coefficients is flat; libjpeg's inverse DCTs give this at each size.
void fill_flat(const PlaneTarget& target, uint8_t* to, int dc) {
  const int quantum = target.component->quant_table->quantval[0];
  const int value = std::clamp(((dc * quantum + 4) >> 3) + CENTERJSAMPLE, 0, MAXJSAMPLE);
  switch (target.block) {
    case 8:
      return fill<8>(to, target.row_bytes, value);
    case 4:
      return fill<4>(to, target.row_bytes, value);
    case 2:
      return fill<2>(to, target.row_bytes, value);
    default:
      return fill<1>(to, target.row_bytes, value);
  }
}

}  // namespace

BlockWriter::BlockWriter(jpeg_decompress_struct& info, const PlaneTargets& targets) : info_(info) {
  for (int c = 0; c < info.comps_in_scan; ++c) {
    const PlaneTarget& target = targets[static_cast<size_t>(c)];
    for (int y = 0; y < target.mcu_height; y += target.block) {
      for (int x = 0; x < target.mcu_width; x += target.block) {
        Slot& slot = slots_[static_cast<size_t>(count_++)];
        slot.target = &target;
        slot.offset = static_cast<size_t>(y) * target.row_bytes + static_cast<size_t>(x);
      }
    }
  }
  if (info.dct_method == JDCT_ISLOW && has_inverse_dct_pair()) {
    pair_slots();
  }
}

void BlockWriter::pair_slots() {
  for (int i = 0; i + 1 < count_; ++i) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    const Slot& next = slots_[static_cast<size_t>(i) + 1];
    if (slot.target->block == DCTSIZE && next.target->block == DCTSIZE) {
      slot.paired = true;
      slot.quanta =
          pair_of(*slot.target->component->quant_table, *next.target->component->quant_table);
      ++i;
    }
  }
}

void BlockWriter::write_one(const Slot& slot, uint8_t* to, int16_t* block, bool ac) const {
  if (!ac) {
    fill_flat(*slot.target, to, block[0]);
    return;
  }
  std::array<JSAMPROW, DCTSIZE> rows;
  for (size_t y = 0; y < rows.size(); ++y) {
    rows[y] = to + y * slot.target->row_bytes;
  }
  jpeg_component_info& component = info_.comp_info[slot.target->component->component_index];
  info_.idct->inverse_DCT[component.component_index](&info_, &component, block, rows.data(), 0);
}

void BlockWriter::write(int row, int column, int16_t* const* blocks, uint32_t with_ac) const {
  const auto place = [&](const Slot& slot) {
    const PlaneTarget& target = *slot.target;
    return target.pixels + static_cast<size_t>(row * target.mcu_height) * target.row_bytes +
           static_cast<size_t>(column * target.mcu_width) + slot.offset;
  };
  for (int i = 0; i < count_; ++i) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (slot.paired && (with_ac >> i & 3) != 0) {
      const Slot& next = slots_[static_cast<size_t>(i) + 1];
      inverse_dct_pair({blocks[i], place(slot), slot.target->row_bytes},
                       {blocks[i + 1], place(next), next.target->row_bytes},
                       slot.quanta);
      ++i;
    } else {
      write_one(slot, place(slot), blocks[i], (with_ac >> i & 1) != 0);
    }
  }
}

}  // namespace argosy::image::codecs
