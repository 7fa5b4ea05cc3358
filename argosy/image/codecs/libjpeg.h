#pragma once

// jpeglib.h uses names that it does not include.
// clang-format off
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#if !defined(LIBJPEG_TURBO_VERSION)
#error \
    "Argosy needs libjpeg-turbo, 1.5 or later (Debian: libjpeg62-turbo-dev); this is another libjpeg"
#endif

namespace argosy::image::codecs {

// Returns the rows and columns of a block after its inverse DCT: 8, 4, 2 or 1, or more if that
// saves an upsampling. libjpeg 7's interface, which some distributions build, has other names for
// it.
#if JPEG_LIB_VERSION >= 70
inline int scaled_size(const jpeg_component_info& part) {
  return part.DCT_h_scaled_size;
}
inline int least_scaled_size(const jpeg_decompress_struct& info) {
  return info.min_DCT_h_scaled_size;
}
#else
inline int scaled_size(const jpeg_component_info& part) {
  return part.DCT_scaled_size;
}
inline int least_scaled_size(const jpeg_decompress_struct& info) {
  return info.min_DCT_scaled_size;
}
#endif

}  // namespace argosy::image::codecs
