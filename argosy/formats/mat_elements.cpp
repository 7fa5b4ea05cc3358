#include "argosy/formats/mat_elements.h"

#include <fmt/format.h>

#include "argosy/base/error.h"

namespace argosy::formats {

void MatSource::fail(size_t at, const std::string& what) const {
  throw DataError(
      "formats.mat",
      compressed_at < 0 ? what : fmt::format("{}, at byte {} of the unpacked variable", what, at),
      {path, compressed_at < 0 ? static_cast<int64_t>(at) : compressed_at});
}

MatElement MatElements::next(const char* what) {
  constexpr size_t kTag = 8;
  constexpr size_t kSmallData = 4;
  if (done() || bytes_.size() - at_ < kTag) {
    source_.fail(at_, fmt::format("torn: expected {}, the data ends", what));
  }
  const size_t at = at_;
  const auto first = mat_number<uint32_t>(source_, bytes_.data() + at);
  const uint32_t small = first >> 16;
  const size_t size = small != 0 ? small : mat_number<uint32_t>(source_, bytes_.data() + at + 4);
  const size_t begin = small != 0 ? at + kTag - kSmallData : at + kTag;
  const size_t room = small != 0 ? kSmallData : bytes_.size() - begin;
  if (size > room) {
    source_.fail(at, fmt::format("torn or damaged: {} of {} bytes where {} are", what, size, room));
  }
  const auto type = static_cast<MatType>(first & 0xffff);
  // Elements begin on multiples of 8 bytes; those behind compressed ones wherever these end.
  const size_t padding = small != 0                     ? kSmallData - size
                         : type == MatType::kCompressed ? 0
                                                        : (8 - size % 8) % 8;
  at_ = begin + size + std::min(padding, bytes_.size() - begin - size);
  return {type, at, begin, bytes_.subspan(begin, size)};
}

}  // namespace argosy::formats
