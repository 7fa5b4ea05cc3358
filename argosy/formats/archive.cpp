#include "argosy/formats/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "argosy/formats/archive_stream.h"

namespace argosy::formats {

class ArchiveReader::Impl {
 public:
  Impl(std::string path, const ArchiveLimits& limits) : stream_(std::move(path), limits) {}

  std::optional<ArchiveMember> next() {
    rest_ = {};
    return stream_.next();
  }

  size_t read(std::span<uint8_t> out) {
    size_t done = 0;
    while (done < out.size()) {
      if (rest_.empty()) {
        rest_ = stream_.next_piece();
        if (rest_.empty()) {
          break;
        }
      }
      const size_t n = std::min(rest_.size(), out.size() - done);
      std::copy_n(rest_.begin(), n, out.begin() + static_cast<int64_t>(done));
      rest_ = rest_.subspan(n);
      done += n;
    }
    return done;
  }

  std::vector<uint8_t> read_all() {
    check_fits(stream_.current().size);  // nothing is unpacked of one that says so itself
    std::vector<uint8_t> bytes(rest_.begin(), rest_.end());
    for (rest_ = {};;) {
      const std::span<const uint8_t> piece = stream_.next_piece();
      if (piece.empty()) {
        return bytes;
      }
      check_fits(static_cast<int64_t>(bytes.size() + piece.size()));
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
  }

  [[nodiscard]] const ArchiveStream& stream() const { return stream_; }

 private:
  void check_fits(int64_t bytes) const {
    const int64_t limit = stream_.limits().member_bytes;
    if (bytes > limit) {
      stream_.fail_member(fmt::format(
          "more than {} bytes. If it is sound, raise ArchiveLimits::member_bytes", limit));
    }
  }

  ArchiveStream stream_;
  std::span<const uint8_t> rest_;  // of the piece that was handed out in part
};

ArchiveReader::ArchiveReader(std::string path, const ArchiveLimits& limits)
    : impl_(std::make_unique<Impl>(std::move(path), limits)) {}
ArchiveReader::~ArchiveReader() = default;
ArchiveReader::ArchiveReader(ArchiveReader&&) noexcept = default;
ArchiveReader& ArchiveReader::operator=(ArchiveReader&&) noexcept = default;

std::optional<ArchiveMember> ArchiveReader::next() {
  return impl_->next();
}

size_t ArchiveReader::read(std::span<uint8_t> out) {
  return impl_->read(out);
}

std::vector<uint8_t> ArchiveReader::read_all() {
  return impl_->read_all();
}

const std::string& ArchiveReader::path() const {
  return impl_->stream().path();
}

std::string ArchiveReader::place() const {
  return impl_->stream().place();
}

}  // namespace argosy::formats
