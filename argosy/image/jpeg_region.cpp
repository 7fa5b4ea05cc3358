#include "argosy/image/jpeg_region.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/jpeg_pixels.h"

namespace argosy::image {
namespace {

void check_options(const JpegRegionOptions& options) {
  const int largest = options.largest_reduction;
  ARGOSY_CHECK(largest == 1 || largest == 2 || largest == 4 || largest == 8,
               "image.jpeg_region",
               "largest_reduction: expected 1, 2, 4 or 8, got {}",
               largest);
  ARGOSY_CHECK(options.gap >= 1 && options.gap <= 1024,
               "image.jpeg_region",
               "gap: expected a number from 1 to 1024, got {}",
               options.gap);
}

void check_box(const Box& box, Size size, Size wanted) {
  ARGOSY_CHECK(box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0 &&
                   box.top <= size.height - box.height && box.left <= size.width - box.width,
               "image.jpeg_region",
               "expected a box inside of {} x {} pixels, got rows {}+{}, columns {}+{}",
               size.height,
               size.width,
               box.top,
               box.height,
               box.left,
               box.width);
  ARGOSY_CHECK(wanted.height > 0 && wanted.width > 0,
               "image.jpeg_region",
               "expected at least 1 x 1 wanted pixels, got {} x {}",
               wanted.height,
               wanted.width);
}

}  // namespace

struct JpegRegionDecoder::Impl {
  explicit Impl(const JpegRegionOptions& wanted) : options(wanted) {}

  JpegRegionOptions options;
  codecs::JpegArea area{};
  codecs::Bytes bytes{};
  std::string_view name{};
  Size size{};
  bool opened = false;

  /// (Again) at the picture's header.
  void read_header() {
    area.reader.open(
        bytes, {options.damaged, options.most_pixels, options.most_working_bytes}, name);
  }

  /// Gets ready for `box`; returns the reduction.
  int begin(const Box& box, Size wanted) {
    ARGOSY_CHECK(opened, "image.jpeg_region", "expected open() before each decode");
    check_box(box, size, wanted);
    opened = false;
    return choose_reduction(box, wanted, options);
  }

  void set_scale(int reduction) {
    jpeg_decompress_struct& info = area.reader.info();
    info.scale_num = 1;
    info.scale_denom = static_cast<unsigned>(reduction);
  }

  /// With Argosy's reader of codes, and where that gives up with libjpeg's.
  void decode(const Box& box, RegionView& out) {
    set_scale(out.reduction);
    if (!codecs::decode_pixels(area, box, options.entropy, out)) {
      read_header();
      set_scale(out.reduction);
      (void)codecs::decode_pixels(area, box, Entropy::kLibjpeg, out);
    }
  }
};

JpegRegionDecoder::JpegRegionDecoder(const JpegRegionOptions& options)
    : impl_(std::make_unique<Impl>(options)) {
  check_options(options);
}

JpegRegionDecoder::~JpegRegionDecoder() = default;
JpegRegionDecoder::JpegRegionDecoder(JpegRegionDecoder&&) noexcept = default;
JpegRegionDecoder& JpegRegionDecoder::operator=(JpegRegionDecoder&&) noexcept = default;

ImageInfo JpegRegionDecoder::open(std::span<const uint8_t> bytes, std::string_view name) {
  Impl& self = *impl_;
  self.opened = false;
  self.bytes = bytes;
  self.name = name;
  self.read_header();
  const jpeg_decompress_struct& info = self.area.reader.info();
  self.size = {static_cast<int>(info.image_height), static_cast<int>(info.image_width)};
  self.opened = true;
  return {Format::kJpeg,
          self.size,
          info.num_components,
          info.data_precision,
          codecs::orientation_in_jpeg(bytes)};
}

RegionView JpegRegionDecoder::decode(const Box& box, Size wanted) {
  Impl& self = *impl_;
  RegionView out;
  out.reduction = self.begin(box, wanted);
  self.decode(box, out);
  return out;
}

JpegRegion decode_region(std::span<const uint8_t> bytes,
                         const Box& box,
                         Size wanted,
                         const JpegRegionOptions& options,
                         std::string_view name) {
  JpegRegionDecoder decoder(options);
  decoder.open(bytes, name);
  const RegionView view = decoder.decode(box, wanted);
  JpegRegion out{Image(view.size, view.order), view.window, view.reduction};
  for (int y = 0; y < view.size.height; ++y) {
    std::memcpy(out.pixels.row<uint8_t>(y),
                view.pixels + static_cast<size_t>(y) * view.row_bytes,
                out.pixels.row_bytes());
  }
  return out;
}

int choose_reduction(const Box& box, Size wanted, const JpegRegionOptions& options) {
  int reduction = options.largest_reduction;
  while (reduction > 1 && (box.height < reduction * (options.gap * wanted.height) ||
                           box.width < reduction * (options.gap * wanted.width))) {
    reduction /= 2;
  }
  return reduction;
}

}  // namespace argosy::image
