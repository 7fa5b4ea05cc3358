#pragma once

#include "argosy/image/resize.h"

// Internal to the room: the decisions of resize() and Resampler before the first pixel.
namespace argosy::image::detail {

inline constexpr auto kResize = "image.resize";

/// Errors: UsageError.
void check_options(Interpolation interpolation, Antialias antialias);
void check_target(Size target);

/// Returns a box as Pillow sees it, with its edges in f32.
struct Edges {
  float top, left, bottom, right;
};
/// Errors: UsageError for a box that is empty or not inside the source, and for an empty source.
[[nodiscard]] Edges edges_of(const BoxF& box, Size source);

/// True if the vertical pass comes before the horizontal one. The order changes bits, because u8 is
/// rounded between them.
[[nodiscard]] bool down_first(Size source, Size target, Antialias antialias);

}  // namespace argosy::image::detail
