#include "argosy/transport/shm/segment.h"

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"

namespace argosy::transport {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr int64_t kCacheLine = 64;

size_t whole_pages(size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

/// Pages of the ranks, postboxes of all pairs, slots, results.
struct Layout {
  explicit Layout(int size) : ranks(static_cast<size_t>(size)) {}
  size_t ranks;

  [[nodiscard]] size_t postboxes() const { return whole_pages(ranks * sizeof(RankPage)); }
  [[nodiscard]] size_t slots() const {
    return postboxes() + whole_pages(ranks * ranks * sizeof(Postbox));
  }
  [[nodiscard]] size_t results() const { return slots() + ranks * kDepth * kSlotBytes; }
  [[nodiscard]] size_t end() const { return results() + ranks * kDepth * kSlotBytes; }
};

}  // namespace

int64_t slot_share(int ranks, int64_t element_bytes) {
  const int64_t unit = std::max(kCacheLine, element_bytes);
  return kSlotBytes / ranks / unit * unit;
}

size_t Segment::bytes_for(int size) {
  return Layout(size).end();
}

Segment::Segment(os::SharedMemory memory, int size) : memory_(std::move(memory)), size_(size) {
  ARGOSY_CHECK(memory_.bytes().size() == bytes_for(size),
               "transport.shm",
               "the memory of a group of {} ranks has {} bytes, expected {}: are all ranks of one "
               "version of Argosy?",
               size,
               memory_.bytes().size(),
               bytes_for(size));
}

RankPage& Segment::page(int rank) const {
  return reinterpret_cast<RankPage*>(memory_.bytes().data())[rank];  // zeros are a page at rest
}

Postbox& Segment::postbox(int from, int to) const {
  auto* const boxes =
      reinterpret_cast<Postbox*>(memory_.bytes().data() + Layout(size_).postboxes());
  return boxes[static_cast<ptrdiff_t>(from) * size_ + to];
}

std::byte* Segment::slot(int rank, uint64_t round) const {
  const size_t index = static_cast<size_t>(rank) * kDepth + round % kDepth;
  return memory_.bytes().data() + Layout(size_).slots() + index * kSlotBytes;
}

std::byte* Segment::result(int rank, uint64_t round) const {
  const size_t index = static_cast<size_t>(rank) * kDepth + round % kDepth;
  return memory_.bytes().data() + Layout(size_).results() + index * kSlotBytes;
}

}  // namespace argosy::transport
