#pragma once

#include "argosy/image/codecs/libjpeg.h"

namespace argosy::image::codecs {

/// Adds the next MCU's coefficients to `blocks`, which are zero, in the scan's order; nullptr:
/// nobody wants them. May leave by JpegReader::leave(), else TRUE.
using McuReader = boolean (*)(j_decompress_ptr info, JBLOCKROW* blocks);

/// Is what replace_entropy_decoder() rests on there? See jpeg_entropy.cpp.
[[nodiscard]] bool can_replace_entropy_decoder();

/// Lets `reader` read the codes in place of libjpeg, of the picture whose one scan
/// jpeg_start_decompress() has just begun. False, and nothing is done, where that cannot be.
[[nodiscard]] bool replace_entropy_decoder(jpeg_decompress_struct& info, McuReader reader);

}  // namespace argosy::image::codecs
