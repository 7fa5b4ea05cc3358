
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/image/codecs/codecs.h"
#include "argosy/image/codecs/escape.h"
#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image {
namespace {

/// libjpeg's compressor, and the memory that it writes into.
class Writer final {
 public:
  Writer() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) {
      static_cast<codecs::Escape*>(info->client_data)->leave();
    };
    errors_.emit_message = [](j_common_ptr, int) {};
    info_.client_data = &escape_;
  }
  ~Writer() {
    jpeg_destroy_compress(&info_);
    std::free(bytes_);  // NOLINT(cppcoreguidelines-no-malloc): libjpeg's
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  std::vector<uint8_t> write(const Image& image, int quality) {
    const bool done = escape_.run([&] {
      jpeg_create_compress(&info_);
      jpeg_mem_dest(&info_, &bytes_, &count_);
      set_up(image, quality);
      jpeg_start_compress(&info_, TRUE);
      while (info_.next_scanline < info_.image_height) {
        // libjpeg only reads from it.
        auto* row = const_cast<uint8_t*>(image.row<uint8_t>(static_cast<int>(info_.next_scanline)));
        (void)jpeg_write_scanlines(&info_, &row, 1);
      }
      jpeg_finish_compress(&info_);
    });
    if (!done) {
      std::array<char, JMSG_LENGTH_MAX> text{};
      errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text.data());
      throw InternalError("image.encode_jpeg", text.data());
    }
    return {bytes_, bytes_ + count_};
  }

 private:
  void set_up(const Image& image, int quality) {
    info_.image_height = static_cast<JDIMENSION>(image.height());
    info_.image_width = static_cast<JDIMENSION>(image.width());
    info_.input_components = image.channels();
    switch (image.order()) {
      case Order::kGray:
        info_.in_color_space = JCS_GRAYSCALE;
        break;
      case Order::kRgb:
        info_.in_color_space = JCS_RGB;
        break;
      case Order::kBgr:
        info_.in_color_space = JCS_EXT_BGR;
        break;
      case Order::kRgba:
        info_.in_color_space = JCS_EXT_RGBX;
        break;
    }
    jpeg_set_defaults(&info_);
    jpeg_set_quality(&info_, quality, TRUE);
  }

  codecs::Escape escape_{};
  jpeg_error_mgr errors_{};
  jpeg_compress_struct info_{};
  unsigned char* bytes_ = nullptr;
  unsigned long count_ = 0;
};

}  // namespace

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  ARGOSY_CHECK(!image.empty() && image.type() == Type::kU8,
               "image.encode_jpeg",
               "expected a u8 image, got {}",
               image.empty() ? "an empty one" : to_string(image.type()));
  ARGOSY_CHECK(image.height() <= JPEG_MAX_DIMENSION && image.width() <= JPEG_MAX_DIMENSION,
               "image.encode_jpeg",
               "expected at most {} rows and columns, got {} x {}",
               JPEG_MAX_DIMENSION,
               image.height(),
               image.width());
  ARGOSY_CHECK(quality >= 1 && quality <= 100,
               "image.encode_jpeg",
               "expected a quality from 1 to 100, got {}",
               quality);
  return Writer().write(image, quality);
}

}  // namespace argosy::image
