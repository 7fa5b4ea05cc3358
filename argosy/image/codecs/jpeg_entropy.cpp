// The one place that looks behind libjpeg's interface.
//
// libjpeg has no door for another reader of codes. Its private header jpegint.h, which Debian's
// package brings, shows struct jpeg_entropy_decoder, and this file rests on two things:
//
// - its second member is decode_mcu, of the type McuReader: so in every libjpeg since 6b of 1998;
// - libjpeg fetches coefficients of a picture in one scan by that pointer alone, MCU by MCU, rows
//   that jpeg_skip_scanlines() leaves out included (with nullptr, or with blocks that nobody looks
//   at), and has not read beyond the scan's header when jpeg_start_decompress() returns.
//
// Both were looked up in libjpeg-turbo 2.1 to 3.2, and jpeg_region_test.cpp would see if they
// ceased to hold. Without the header, or with another version of the library, libjpeg reads the
// codes: the pixels are the same.
#include "argosy/image/codecs/jpeg_entropy.h"

#if defined(ARGOSY_NO_JPEGINT) || LIBJPEG_TURBO_VERSION_NUMBER < 2001000 || \
    LIBJPEG_TURBO_VERSION_NUMBER >= 3003000
#define ARGOSY_HAS_JPEGINT 0
#elif __has_include(<jpegint.h>)
#define ARGOSY_HAS_JPEGINT 1
#else
#define ARGOSY_HAS_JPEGINT 0
#endif

#if ARGOSY_HAS_JPEGINT
#include <jpegint.h>

#include <type_traits>
#elif defined(ARGOSY_REQUIRE_JPEGINT)
#error "no jpegint.h of libjpeg-turbo 2.1 to 3.2"
#endif

namespace argosy::image::codecs {

#if ARGOSY_HAS_JPEGINT

static_assert(std::is_standard_layout_v<jpeg_entropy_decoder> &&
                  std::is_same_v<decltype(jpeg_entropy_decoder::decode_mcu), McuReader> &&
                  offsetof(jpeg_entropy_decoder, decode_mcu) == sizeof(void (*)()),
              "jpegint.h is not the one that this file knows: build with -DARGOSY_NO_JPEGINT");

bool can_replace_entropy_decoder() {
  return true;
}

bool replace_entropy_decoder(jpeg_decompress_struct& info, McuReader reader) {
  info.entropy->decode_mcu = reader;
  return true;
}

#else

bool can_replace_entropy_decoder() {
  return false;
}

bool replace_entropy_decoder(jpeg_decompress_struct& /*info*/, McuReader /*reader*/) {
  return false;
}

#endif

}  // namespace argosy::image::codecs
