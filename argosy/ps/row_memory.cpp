#include "argosy/ps/row_memory.h"

namespace argosy::ps {

Result<uint32_t> RowMemory::take() {
  if (!free_.empty()) {
    const uint32_t row = free_.back();
    free_.pop_back();
    return row;
  }
  const size_t needed = (rows_ + 1) * row_bytes();
  if (needed > memory_.bytes().size()) {
    // Twice as much costs nothing before it is touched.
    if (Status grown = memory_.grow(2 * needed); !grown.ok()) {
      return grown.failure();
    }
  }
  return static_cast<uint32_t>(rows_++);
}

}  // namespace argosy::ps
