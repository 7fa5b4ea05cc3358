#include "argosy/rpc/ring.h"

#include <algorithm>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::rpc {
namespace {

/// Stands before the bytes of each frame, which end at a whole one.
struct FrameHead {
  uint32_t size;
  uint32_t kind;
  uint64_t call;
};

uint64_t taken_by(size_t bytes) {
  return sizeof(FrameHead) +
         (bytes + sizeof(FrameHead) - 1) / sizeof(FrameHead) * sizeof(FrameHead);
}

[[noreturn]] void cannot_be(const char* what) {
  throw RendezvousError("rpc.lane", what);
}

}  // namespace

bool Ring::put(uint32_t kind, uint64_t call, std::span<const std::byte> bytes) {
  const uint64_t unread = at_ - control_.read.load(std::memory_order_acquire);
  if (unread > kBytes) {
    cannot_be("the reader says that it has read more than was written");
  }
  if (taken_by(bytes.size()) > kBytes - unread) {
    return false;
  }
  const FrameHead head{static_cast<uint32_t>(bytes.size()), kind, call};
  copy_in(at_, std::as_bytes(std::span(&head, 1)));
  copy_in(at_ + sizeof head, bytes);
  at_ += taken_by(bytes.size());
  control_.written.store(at_);  // in one order with the reader's word: see Lane
  return true;
}

std::optional<Ring::Frame> Ring::take() {
  const uint64_t unread = control_.written.load(std::memory_order_acquire) - at_;
  if (unread == 0) {
    return std::nullopt;
  }
  FrameHead head{};
  if (unread > kBytes || unread < sizeof head) {
    cannot_be("the writer says that it has written more than there is room for");
  }
  copy_out(at_, std::as_writable_bytes(std::span(&head, 1)));
  if (head.size > kMostInFrame || taken_by(head.size) > unread) {
    cannot_be("a frame says that it is longer than what was written");
  }
  Frame frame{.kind = head.kind, .call = head.call, .bytes = std::string(head.size, '\0')};
  copy_out(at_ + sizeof head, std::as_writable_bytes(std::span(frame.bytes)));
  at_ += taken_by(head.size);
  control_.read.store(at_, std::memory_order_release);
  return frame;
}

void Ring::copy_in(uint64_t at, std::span<const std::byte> bytes) {
  const size_t place = at % kBytes;
  const size_t first = std::min(bytes.size(), kBytes - place);
  std::memcpy(data_.data() + place, bytes.data(), first);
  std::memcpy(data_.data(), bytes.data() + first, bytes.size() - first);
}

void Ring::copy_out(uint64_t at, std::span<std::byte> bytes) const {
  const size_t place = at % kBytes;
  const size_t first = std::min(bytes.size(), kBytes - place);
  std::memcpy(bytes.data(), data_.data() + place, first);
  std::memcpy(bytes.data() + first, data_.data(), bytes.size() - first);
}

}  // namespace argosy::rpc
