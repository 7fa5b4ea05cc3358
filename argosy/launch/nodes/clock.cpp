#include "argosy/launch/nodes/clock.h"

#include <limits>

namespace argosy::launch {

int64_t clock_offset_us(const std::function<int64_t()>& theirs) {
  constexpr int kCalls = 8;
  int64_t quickest = std::numeric_limits<int64_t>::max();
  int64_t offset = 0;
  for (int i = 0; i < kCalls; ++i) {
    const int64_t before = now_us(0);
    const int64_t there = theirs();
    const int64_t after = now_us(0);
    if (after - before < quickest) {
      quickest = after - before;
      offset = there - (before + (after - before) / 2);
    }
  }
  return offset;
}

}  // namespace argosy::launch
