#include "argosy/formats/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/formats/archive_stream.h"
#include "argosy/formats/shown_name.h"

namespace argosy::formats {
namespace {

/// Bytes that only grow. realloc moves large blocks by their pages: no second copy of gigabytes
/// while growing, and no zeros written first, as a vector would.
class GrowingBuffer final {
 public:
  void append(std::span<const uint8_t> bytes) {
    if (bytes.size() > capacity_ - size_) {
      reallocate(std::max(size_ + bytes.size(), capacity_ + capacity_ / 2));
    }
    std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void shrink() {
    if (size_ > 0 && size_ < capacity_) {
      reallocate(size_);
    }
  }
  [[nodiscard]] const uint8_t* data() const { return data_.get(); }
  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] size_t capacity() const { return capacity_; }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  void reallocate(size_t capacity) {
    void* bytes = std::realloc(data_.get(), capacity);
    if (bytes == nullptr) {
      throw std::bad_alloc();
    }
    (void)data_.release();
    data_.reset(static_cast<uint8_t*>(bytes));
    capacity_ = capacity;
  }

  std::unique_ptr<uint8_t, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

struct Member {
  std::string name;
  size_t offset = 0;  // in the mapping or in the buffer
  size_t size = 0;
  bool mapped = false;
};

}  // namespace

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

struct ArchiveImage::Impl {
  std::string path;
  os::Mapping mapping;
  GrowingBuffer buffer;
  std::vector<Member> members;
  std::vector<size_t> by_name;  // indices of members, sorted by name

  void load(const Wanted& wanted, const ArchiveLimits& limits) {
    ArchiveStream stream(path, limits);
    size_t names = 0;  // bytes
    while (const std::optional<ArchiveMember> member = stream.next()) {
      if (wanted && !wanted(member->name)) {
        continue;
      }
      if (member->size > limits.member_bytes) {
        stream.fail_member(fmt::format(
            "{} bytes are more than {}. If it is sound, raise ArchiveLimits::member_bytes",
            member->size,
            limits.member_bytes));
      }
      names += member->name.size() + sizeof(Member);
      check_total(stream, names, limits);
      members.push_back(take(stream, *member, limits));
    }
    buffer.shrink();
    mapping = stream.take_mapping();
    sort_names();
  }

  static void check_total(const ArchiveStream& stream, size_t bytes, const ArchiveLimits& limits) {
    if (static_cast<int64_t>(bytes) > limits.total_bytes) {
      stream.fail_member(
          fmt::format("the members so far take more than {} bytes of memory. If it is sound, "
                      "raise ArchiveLimits::total_bytes",
                      limits.total_bytes));
    }
  }

  /// The current member, mapped where it lies in the mapping in one piece.
  Member take(ArchiveStream& stream, const ArchiveMember& header, const ArchiveLimits& limits) {
    const std::span<const uint8_t> mapped = stream.mapping();
    Member member{header.name, buffer.size(), static_cast<size_t>(header.size), false};
    for (auto piece = stream.next_piece(); !piece.empty(); piece = stream.next_piece()) {
      const bool inside = !mapped.empty() && std::greater_equal<>()(piece.data(), mapped.data()) &&
                          std::less<>()(piece.data(), mapped.data() + mapped.size());
      if (inside && piece.size() == member.size) {
        member.mapped = true;
        member.offset = static_cast<size_t>(piece.data() - mapped.data());
        continue;
      }
      check_total(stream, buffer.size() + piece.size(), limits);
      buffer.append(piece);
    }
    return member;
  }

  void sort_names() {
    by_name.resize(members.size());
    std::iota(by_name.begin(), by_name.end(), size_t{0});
    std::sort(by_name.begin(), by_name.end(), [&](size_t a, size_t b) {
      return members[a].name < members[b].name;
    });
    const auto twice = std::adjacent_find(by_name.begin(), by_name.end(), [&](size_t a, size_t b) {
      return members[a].name == members[b].name;
    });
    if (twice != by_name.end()) {
      throw DataError(
          "formats.archive", "two members have this name: which one is meant?", {place(*twice)});
    }
  }

  [[nodiscard]] std::string place(size_t index) const {
    return path + ":" + shown_name(members[index].name);
  }

  [[nodiscard]] std::span<const uint8_t> bytes(const Member& member) const {
    const auto* mapped = reinterpret_cast<const uint8_t*>(mapping.bytes().data());
    return {(member.mapped ? mapped : buffer.data()) + member.offset, member.size};
  }

  [[nodiscard]] const Member& checked(size_t index) const {
    ARGOSY_CHECK(
        index < members.size(), "formats.archive", "index {} of {} members", index, members.size());
    return members[index];
  }
};

ArchiveImage::ArchiveImage(std::string path, const Wanted& wanted, const ArchiveLimits& limits) {
  auto impl = std::make_unique<Impl>();
  impl->path = std::move(path);
  impl->load(wanted, limits);
  impl_ = std::move(impl);
}
ArchiveImage::~ArchiveImage() = default;
ArchiveImage::ArchiveImage(ArchiveImage&&) noexcept = default;
ArchiveImage& ArchiveImage::operator=(ArchiveImage&&) noexcept = default;

size_t ArchiveImage::size() const {
  return impl_->members.size();
}

const std::string& ArchiveImage::name(size_t index) const {
  return impl_->checked(index).name;
}

std::span<const uint8_t> ArchiveImage::bytes(size_t index) const {
  return impl_->bytes(impl_->checked(index));
}

std::optional<size_t> ArchiveImage::find(std::string_view name) const {
  const auto& members = impl_->members;
  const auto at = std::lower_bound(
      impl_->by_name.begin(), impl_->by_name.end(), name, [&](size_t i, std::string_view wanted) {
        return members[i].name < wanted;
      });
  if (at == impl_->by_name.end() || members[*at].name != name) {
    return std::nullopt;
  }
  return *at;
}

std::span<const uint8_t> ArchiveImage::at(std::string_view name) const {
  const std::optional<size_t> index = find(name);
  if (!index) {
    throw DataError("formats.archive",
                    fmt::format("no member {} among {} that were read", shown_name(name), size()),
                    {impl_->path});
  }
  return bytes(*index);
}

const std::string& ArchiveImage::path() const {
  return impl_->path;
}

std::string ArchiveImage::place(size_t index) const {
  (void)impl_->checked(index);
  return impl_->place(index);
}

size_t ArchiveImage::memory_bytes() const {
  return impl_->buffer.capacity();
}

}  // namespace argosy::formats
