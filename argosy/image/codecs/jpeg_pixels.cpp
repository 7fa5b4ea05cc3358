#include "argosy/image/codecs/jpeg_pixels.h"

#include <algorithm>
#include <array>

#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/jpeg_entropy.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {
namespace {

constexpr const char* kUnusual = "unusual scan";

/// JpegScan in the place of libjpeg's Huffman decoder. What lies beside the columns that libjpeg
/// transforms is only skipped.
struct Reading {
  JpegScan* scan = nullptr;
  uint32_t column = 0;  // of the next MCU
  uint32_t columns = 0;
  uint32_t first = 0;  // of those that are transformed
  uint32_t last = 0;

  static boolean read_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
    auto& reader = *static_cast<JpegReader*>(info->client_data);
    Reading& self = *static_cast<Reading*>(reader.hook);
    bool good = false;
    if (blocks == nullptr || self.column < self.first || self.column > self.last) {
      good = self.scan->skip(1);
    } else {
      std::array<int16_t*, D_MAX_BLOCKS_IN_MCU> pointers;
      for (int i = 0; i < info->blocks_in_MCU; ++i) {
        pointers[static_cast<size_t>(i)] = blocks[i][0];
      }
      good = self.scan->read(pointers.data());
    }
    if (!good) {
      reader.leave(kUnusual);
    }
    self.column = self.column + 1 == self.columns ? 0 : self.column + 1;
    return TRUE;
  }
};

/// The box in the reduced picture, rounded outwards, and with what libjpeg's upsampling looks at
/// around it: it takes the edge of what is decoded for the edge of the picture.
struct Cut {
  int top = 0;
  int bottom = 0;
  int left = 0;
  int right = 0;
  JDIMENSION first_row = 0;
  JDIMENSION first_column = 0;
  JDIMENSION columns = 0;
};

Cut cut_of(const jpeg_decompress_struct& info, const Box& box, int reduction) {
  constexpr int kAround = 2;  // samples of the coarsest component
  const auto up = [&](int v) { return (v + reduction - 1) / reduction; };
  const auto height = static_cast<int>(info.output_height);
  const auto width = static_cast<int>(info.output_width);
  Cut cut;
  cut.top = box.top / reduction;
  cut.left = box.left / reduction;
  cut.bottom = std::min(up(box.top + box.height), height);
  cut.right = std::min(up(box.left + box.width), width);
  const int rows = kAround * info.max_v_samp_factor;
  const int columns = kAround * info.max_h_samp_factor;
  cut.first_row = static_cast<JDIMENSION>(std::max(cut.top - rows, 0));
  cut.first_column = static_cast<JDIMENSION>(std::max(cut.left - columns, 0));
  cut.columns = static_cast<JDIMENSION>(std::min(cut.right + columns, width)) - cut.first_column;
  return cut;
}

/// Of the reduced picture; a lone component has MCUs of one block.
JDIMENSION mcu_width_of(const jpeg_decompress_struct& info) {
  const int blocks = info.num_components == 1 ? 1 : info.max_h_samp_factor;
  return static_cast<JDIMENSION>(blocks * least_scaled_size(info));
}

/// libjpeg-turbo 2.1 forgets columns of a component that the inverse DCT enlarges and the
/// upsampling enlarges again (luma 4 × 2 and a reduction).
bool can_crop(const jpeg_decompress_struct& info) {
  return std::all_of(info.comp_info, info.comp_info + info.num_components, [&](const auto& part) {
    return scaled_size(part) == least_scaled_size(info) ||
           part.h_samp_factor * scaled_size(part) ==
               info.max_h_samp_factor * least_scaled_size(info);
  });
}

J_COLOR_SPACE wanted_space(const jpeg_decompress_struct& info) {
  switch (info.jpeg_color_space) {
    case JCS_GRAYSCALE:
      return JCS_GRAYSCALE;
    case JCS_CMYK:
    case JCS_YCCK:
      return JCS_CMYK;
    default:
      return JCS_RGB;
  }
}

void read_rows(jpeg_decompress_struct& info, uint8_t* to, size_t row_bytes, JDIMENSION end) {
  std::array<JSAMPROW, 8> rows;
  uint8_t* next = to;
  while (info.output_scanline < end) {
    const JDIMENSION count =
        std::min(static_cast<JDIMENSION>(rows.size()), end - info.output_scanline);
    for (JDIMENSION i = 0; i < count; ++i) {
      rows[i] = next + i * row_bytes;
    }
    next += jpeg_read_scanlines(&info, rows.data(), count) * row_bytes;
  }
}

const uint8_t* to_rgb(Buffer& buffer, const uint8_t* cmyk, size_t row_bytes, Size size) {
  const auto width = static_cast<size_t>(size.width);
  uint8_t* const rgb = buffer.at_least(width * 3 * static_cast<size_t>(size.height));
  for (size_t y = 0; y < static_cast<size_t>(size.height); ++y) {
    adobe_cmyk_to_rgb(cmyk + y * row_bytes, rgb + y * width * 3, width);
  }
  return rgb;
}

}  // namespace

bool decode_pixels(JpegArea& area, const Box& box, Entropy entropy, RegionView& out) {
  JpegReader& reader = area.reader;
  jpeg_decompress_struct& info = reader.info();
  const int reduction = static_cast<int>(info.scale_denom / info.scale_num);
  reader.run([&] {
    info.out_color_space = wanted_space(info);
    jpeg_start_decompress(&info);
  });
  Reading reading;
  if (entropy == Entropy::kOwn) {
    if (!area.scan.start(info, reader.unread()) ||
        !replace_entropy_decoder(info, Reading::read_mcu)) {
      return false;
    }
    reading.scan = &area.scan;
    reading.columns = info.MCUs_per_row;
    reading.last = info.MCUs_per_row - 1;
    reader.hook = &reading;
  }
  Cut cut = cut_of(info, box, reduction);
  if (can_crop(info)) {
    reader.run([&] { jpeg_crop_scanline(&info, &cut.first_column, &cut.columns); });
  } else {
    cut.first_column = 0;
    cut.columns = info.output_width;
  }
  const JDIMENSION mcu_width = mcu_width_of(info);
  reading.first = cut.first_column / mcu_width;
  reading.last = (cut.first_column + cut.columns - 1) / mcu_width;
  const auto channels = static_cast<size_t>(info.output_components);
  const size_t row_bytes = cut.columns * channels;
  uint8_t* const pixels =
      area.pixels.at_least(row_bytes * (static_cast<size_t>(cut.bottom) - cut.first_row));
  const bool done = reader.try_run([&] {
    if (cut.first_row > 0) {
      (void)jpeg_skip_scanlines(&info, cut.first_row);
    }
    read_rows(info, pixels, row_bytes, static_cast<JDIMENSION>(cut.bottom));
  });
  reader.hook = nullptr;
  if (!done && !reader.left_for(kUnusual)) {
    reader.fail();
  }
  if (!done || (entropy == Entropy::kOwn && area.scan.ran_out())) {
    return false;
  }
  const double scale = 1.0 / reduction;
  const Size size{cut.bottom - cut.top, cut.right - cut.left};
  const uint8_t* first = pixels + (static_cast<size_t>(cut.top) - cut.first_row) * row_bytes +
                         (static_cast<size_t>(cut.left) - cut.first_column) * channels;
  out.row_bytes = row_bytes;
  out.pixels = first;
  if (info.out_color_space == JCS_CMYK) {
    out.row_bytes = static_cast<size_t>(size.width) * 3;
    out.pixels = to_rgb(area.rgb, first, row_bytes, size);
  }
  out.size = size;
  out.window = {box.top * scale - cut.top,
                box.left * scale - cut.left,
                box.height * scale,
                box.width * scale};
  out.order = info.out_color_space == JCS_GRAYSCALE ? Order::kGray : Order::kRgb;
  return true;
}

}  // namespace argosy::image::codecs
