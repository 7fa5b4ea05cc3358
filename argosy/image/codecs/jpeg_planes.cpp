
#include <algorithm>
#include <bit>
#include <cstring>

#include "argosy/image/codecs/block_writer.h"
#include "argosy/image/codecs/jpeg_area.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {
namespace {

/// Memory for `rows` × `columns` units of which each component's part is `down` × `across` blocks.
PlaneTarget make_target(Buffer& buffer,
                        const jpeg_component_info& component,
                        int down,
                        int across,
                        int64_t rows,
                        int64_t columns) {
  PlaneTarget target;
  target.component = &component;
  target.block = component.DCT_scaled_size;
  target.mcu_height = down * target.block;
  target.mcu_width = across * target.block;
  const auto width = static_cast<size_t>(columns * target.mcu_width);
  target.row_bytes = (width + Buffer::kAlign - 1) / Buffer::kAlign * Buffer::kAlign;
  target.pixels = buffer.at_least(target.row_bytes * static_cast<size_t>(rows * target.mcu_height));
  return target;
}

/// What lies in the MCUs of `mcus`, of which the first is at target.pixels, with the place of
/// `box`.
PlaneView view_of(const PlaneTarget& target, const McuBox& mcus, const Box& box) {
  const double down = double{1} * target.mcu_height / mcus.height;
  const double across = double{1} * target.mcu_width / mcus.width;
  const int top = mcus.first_row * target.mcu_height;
  const int left = mcus.first_column * target.mcu_width;
  const int bottom = std::min<int>((mcus.last_row + 1) * target.mcu_height,
                                   static_cast<int>(target.component->downsampled_height));
  const int right = std::min<int>((mcus.last_column + 1) * target.mcu_width,
                                  static_cast<int>(target.component->downsampled_width));
  return {target.pixels,
          target.row_bytes,
          {bottom - top, right - left},
          {box.top * down - top, box.left * across - left, box.height * down, box.width * across}};
}

bool is_plain_size(int size) {
  return size == 8 || size == 4 || size == 2 || size == 1;
}

bool transform_mcus(JpegArea& area, const McuBox& mcus, const PlaneTargets& targets) {
  jpeg_decompress_struct& info = area.reader.info();
  const BlockWriter writer(info, targets);
  alignas(Buffer::kAlign) std::array<JpegScan::Block, D_MAX_BLOCKS_IN_MCU> blocks;
  std::array<int16_t*, D_MAX_BLOCKS_IN_MCU> pointers{};
  for (size_t i = 0; i < blocks.size(); ++i) {
    pointers[i] = blocks[i].data();
  }
  const int beside = static_cast<int>(info.MCUs_per_row) - 1 - mcus.last_column;
  if (!area.scan.skip(int64_t{mcus.first_row} * info.MCUs_per_row)) {
    return false;
  }
  for (int row = 0; row <= mcus.last_row - mcus.first_row; ++row) {
    if (!area.scan.skip(mcus.first_column + (row > 0 ? beside : 0))) {
      return false;
    }
    for (int column = 0; column <= mcus.last_column - mcus.first_column; ++column) {
      std::memset(blocks.data(), 0, sizeof(JpegScan::Block) * static_cast<size_t>(writer.blocks()));
      uint32_t with_ac = 0;
      if (!area.scan.read(pointers.data(), with_ac)) {
        return false;
      }
      writer.write(row, column, pointers.data(), with_ac);
    }
  }
  return !area.scan.ran_out();
}

McuBox units_of(const Box& box, int height, int width) {
  return {height,
          width,
          box.top / height,
          (box.top + box.height - 1) / height,
          box.left / width,
          (box.left + box.width - 1) / width};
}

void fill_out(const jpeg_decompress_struct& info,
              const PlaneTargets& targets,
              const McuBox& mcus,
              const Box& box,
              PlanesView& out) {
  out.count = info.num_components;
  for (int c = 0; c < out.count; ++c) {
    out.planes[static_cast<size_t>(c)] = view_of(targets[static_cast<size_t>(c)], mcus, box);
  }
}

}  // namespace

bool decode_planes_by_mcu(JpegArea& area, const Box& box, PlanesView& out) {
  jpeg_decompress_struct& info = area.reader.info();
  area.reader.run([&] {
    info.raw_data_out = TRUE;
    jpeg_start_decompress(&info);
  });
  if (!area.scan.start(info, area.reader.unread())) {
    return false;
  }
  // A lone component has MCUs of one block, whatever its sampling factors say.
  const jpeg_component_info& first = *info.cur_comp_info[0];
  const McuBox mcus =
      units_of(box,
               DCTSIZE * info.max_v_samp_factor / first.v_samp_factor * first.MCU_height,
               DCTSIZE * info.max_h_samp_factor / first.h_samp_factor * first.MCU_width);
  PlaneTargets targets;
  for (int c = 0; c < info.comps_in_scan; ++c) {
    const jpeg_component_info& component = *info.cur_comp_info[c];
    if (!is_plain_size(component.DCT_scaled_size)) {
      return false;
    }
    targets[static_cast<size_t>(c)] = make_target(area.buffers[static_cast<size_t>(c)],
                                                  component,
                                                  component.MCU_height,
                                                  component.MCU_width,
                                                  mcus.rows(),
                                                  mcus.columns());
  }
  if (!transform_mcus(area, mcus, targets)) {
    return false;
  }
  fill_out(info, targets, mcus, box, out);
  return true;
}

void decode_planes_by_row(JpegArea& area, const Box& box, PlanesView& out) {
  jpeg_decompress_struct& info = area.reader.info();
  area.reader.run([&] {
    info.raw_data_out = TRUE;
    jpeg_start_decompress(&info);
  });
  const McuBox mcus =
      units_of(box, DCTSIZE * info.max_v_samp_factor, DCTSIZE * info.max_h_samp_factor);
  const int64_t across = (info.image_width + mcus.width - 1) / mcus.width;
  PlaneTargets targets;
  for (int c = 0; c < info.num_components; ++c) {
    const jpeg_component_info& component = info.comp_info[c];
    targets[static_cast<size_t>(c)] = make_target(area.buffers[static_cast<size_t>(c)],
                                                  component,
                                                  component.v_samp_factor,
                                                  component.h_samp_factor,
                                                  mcus.rows(),
                                                  across);
  }
  area.reader.run([&] {
    // libjpeg may write behind the last row that it counts, so a row of pointers for each of a
    // unit's.
    std::array<std::array<JSAMPROW, MAX_SAMP_FACTOR * DCTSIZE>, 3> rows;
    std::array<JSAMPARRAY, 3> image{rows[0].data(), rows[1].data(), rows[2].data()};
    for (int row = 0; row <= mcus.last_row; ++row) {
      const int place = std::max(row - mcus.first_row, 0);
      for (int c = 0; c < info.num_components; ++c) {
        const PlaneTarget& target = targets[static_cast<size_t>(c)];
        for (int y = 0; y < target.mcu_height; ++y) {
          rows[static_cast<size_t>(c)][static_cast<size_t>(y)] =
              target.pixels + static_cast<size_t>(place * target.mcu_height + y) * target.row_bytes;
        }
        info.comp_info[c].component_needed = static_cast<boolean>(row >= mcus.first_row);
      }
      const int lines = info.max_v_samp_factor * info.min_DCT_scaled_size;
      (void)jpeg_read_raw_data(&info, image.data(), static_cast<JDIMENSION>(lines));
    }
  });
  for (int c = 0; c < info.num_components; ++c) {  // the planes begin at the picture's left edge
    PlaneTarget& target = targets[static_cast<size_t>(c)];
    target.pixels += static_cast<size_t>(mcus.first_column * target.mcu_width);
  }
  fill_out(info, targets, mcus, box, out);
}

}  // namespace argosy::image::codecs
