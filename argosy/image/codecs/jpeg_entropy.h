#pragma once

#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// Adds the next MCU's coefficients to `blocks`, which must be zero, in the scan's order. nullptr:
/// nobody needs them. Returns TRUE, or leaves by JpegReader::leave().
using McuReader = boolean (*)(j_decompress_ptr info, JBLOCKROW* blocks);

/// True if replace_entropy_decoder() finds what it needs. See jpeg_entropy.cpp.
[[nodiscard]] bool can_replace_entropy_decoder();

/// Lets `reader` read the codes instead of libjpeg, for the picture whose only scan
/// jpeg_start_decompress() has just begun. Returns false and does nothing if that is impossible.
[[nodiscard]] bool replace_entropy_decoder(jpeg_decompress_struct& info, McuReader reader);

}  // namespace argosy::image::codecs
