#pragma once

// jpeglib.h uses what it does not include; jpegint.h (of Debian's package) shows what stands behind
// cinfo->entropy, cinfo->idct and the like.
// clang-format off
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>
#include <jerror.h>
#include <jpegint.h>
// clang-format on

#undef MAX
#undef MIN
