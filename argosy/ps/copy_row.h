#pragma once

#include <cstddef>
#include <cstring>

namespace argosy::ps {

/// Copies a row. For usual widths without a call, which would take longer than the copy.
inline void copy_row(float* to, const float* from, size_t dim) {
  switch (dim) {
    case 8:
      std::memcpy(to, from, 8 * sizeof(float));
      return;
    case 16:
      std::memcpy(to, from, 16 * sizeof(float));
      return;
    case 32:
      std::memcpy(to, from, 32 * sizeof(float));
      return;
    default:
      std::memcpy(to, from, dim * sizeof(float));
  }
}

}  // namespace argosy::ps
