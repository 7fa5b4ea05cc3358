#include "argosy/formats/archive_stream.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <locale.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"

namespace argosy::formats {
namespace {

constexpr size_t kBlock = 512;  // of a tar file
constexpr size_t kEndBlocks = 2;
constexpr size_t kLongestName = 4096;
constexpr int64_t kRatioFrom = int64_t{64} << 20;

/// A tar header carries the sum of its bytes, its own field taken as spaces, in octal. Some old
/// programs summed signed bytes.
bool is_tar_header(std::span<const uint8_t> block) {
  constexpr size_t kField = 148;
  constexpr size_t kFieldBytes = 8;
  int64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint8_t byte = i >= kField && i < kField + kFieldBytes ? ' ' : block[i];
    sum += byte;
    signed_sum += static_cast<int8_t>(byte);
  }
  int64_t written = 0;
  size_t i = kField;
  while (i < kField + kFieldBytes && block[i] == ' ') {
    ++i;
  }
  for (; i < kField + kFieldBytes && block[i] >= '0' && block[i] <= '7'; ++i) {
    written = written * 8 + (block[i] - '0');
  }
  return written == sum || written == signed_sum;
}

bool all_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

ArchiveKind kind_of(std::span<const uint8_t> begin) {
  constexpr size_t kZipMagic = 4;
  if (begin.size() >= kZipMagic && (std::memcmp(begin.data(), "PK\x03\x04", kZipMagic) == 0 ||
                                    std::memcmp(begin.data(), "PK\x05\x06", kZipMagic) == 0)) {
    return ArchiveKind::kZip;
  }
  if (begin.size() < kBlock) {
    return ArchiveKind::kNone;
  }
  const std::span<const uint8_t> block = begin.first(kBlock);
  return all_zero(block) || is_tar_header(block) ? ArchiveKind::kTar : ArchiveKind::kNone;
}

const char* type_name(archive_entry* entry) {
  switch (archive_entry_filetype(entry)) {
    case AE_IFLNK:
      return "a symbolic link";
    case AE_IFCHR:
    case AE_IFBLK:
      return "a device";
    case AE_IFIFO:
      return "a named pipe";
    case AE_IFSOCK:
      return "a socket";
    default:
      return "neither a file nor a folder";
  }
}

bool has_parent_step(std::string_view name) {
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == "..") {
      return true;
    }
    begin = end + 1;
  }
  return false;
}

std::string_view without_dot(std::string_view name) {
  while (name.starts_with("./")) {
    name.remove_prefix(2);
    while (name.starts_with("/")) {
      name.remove_prefix(1);
    }
  }
  return name;
}

/// libarchive converts the names of pax and zip files from UTF-8 to the thread's locale, and warns
/// of each one that the "C" locale cannot hold. Here they are to stay as they are.
class Utf8Names final {
 public:
  Utf8Names() : before_(uselocale(locale())) {}
  ~Utf8Names() { uselocale(before_); }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;

 private:
  static locale_t locale() {  // made once, kept; null (no such locale) leaves the thread's
    static locale_t const utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return utf8;
  }
  locale_t before_;
};

}  // namespace

ArchiveKind archive_kind(const std::string& path) {
  FileReader reader(path);
  std::array<uint8_t, kBlock> begin{};
  const size_t got = reader.read(begin);
  const ArchiveKind kind = kind_of(std::span(begin).first(got));
  // A zip file inside gzip cannot be read from its end, where its table is.
  return kind == ArchiveKind::kZip && reader.compressed() ? ArchiveKind::kNone : kind;
}

void ArchiveLimits::validate() const {
  constexpr const char* kText = "ArchiveLimits::{} must be positive";
  ARGOSY_CHECK(members > 0, "formats.archive", kText, "members");
  ARGOSY_CHECK(member_bytes > 0, "formats.archive", kText, "member_bytes");
  ARGOSY_CHECK(total_bytes > 0, "formats.archive", kText, "total_bytes");
  ARGOSY_CHECK(ratio > 0, "formats.archive", kText, "ratio");
}

void ArchiveStream::Close::operator()(archive* handle) const {
  archive_read_free(handle);
}

ArchiveStream::ArchiveStream(std::string path, const ArchiveLimits& limits)
    : path_(std::move(path)), limits_(limits) {
  limits_.validate();
  FileReader reader(path_);
  if (reader.compressed()) {
    std::error_code unknown;
    file_bytes_ = static_cast<int64_t>(std::filesystem::file_size(path_, unknown));
    buffer_.resize(size_t{64} * 1024);
    gzip_ = std::move(reader);
    filled_ = fill();
    kind_ = kind_of(std::span(buffer_).first(filled_));
  } else {
    mapping_ = os::map_file(path_).or_throw<DataError>("formats.archive");
    file_bytes_ = static_cast<int64_t>(mapping_.bytes().size());
    kind_ = kind_of(mapping());
  }
  if (kind_ == ArchiveKind::kNone || (gzip_ && kind_ == ArchiveKind::kZip)) {
    fail(
        "not an archive, or a damaged or truncated one: expected tar, tar.gz or zip. Is it the "
        "right file?",
        0);
  }
  open();
}

std::span<const uint8_t> ArchiveStream::mapping() const {
  const std::span<const std::byte> bytes = mapping_.bytes();
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

void ArchiveStream::open() {
  archive_.reset(archive_read_new());
  ARGOSY_INVARIANT(archive_ != nullptr, "formats.archive");
  if (kind_ == ArchiveKind::kTar) {
    check_code(archive_read_support_format_tar(archive_.get()), "set up");
  } else {
    check_code(archive_read_support_format_zip_seekable(archive_.get()), "set up");
  }
  check_code(gzip_ ? archive_read_open(archive_.get(), this, nullptr, &on_read, nullptr)
                   : archive_read_open_memory(archive_.get(), mapping().data(), mapping().size()),
             "open");
}

/// Unpacks the next piece into buffer_. Errors: FileReader's; the ratio.
size_t ArchiveStream::fill() {
  const int64_t before = gzip_->position();
  const size_t got = gzip_->read(buffer_);
  check_ratio(gzip_->position());
  const auto end = buffer_.begin() + static_cast<int64_t>(got);
  const auto last = std::find_if(
      std::make_reverse_iterator(end), buffer_.rend(), [](uint8_t byte) { return byte != 0; });
  if (last != buffer_.rend()) {
    zeros_from_ = before + (last.base() - buffer_.begin());
  }
  return got;
}

long ArchiveStream::on_read(archive* handle, void* self, const void** buffer) {
  auto& stream = *static_cast<ArchiveStream*>(self);
  *buffer = stream.buffer_.data();
  try {
    if (stream.filled_ > 0) {  // what the constructor looked at
      return static_cast<long>(std::exchange(stream.filled_, 0));
    }
    return static_cast<long>(stream.fill());
  } catch (...) {  // must not pass through C
    stream.thrown_ = std::current_exception();
    archive_set_error(handle, EIO, "see the exception");
    return -1;
  }
}

void ArchiveStream::check_ratio(int64_t unpacked) const {
  if (unpacked <= kRatioFrom ||
      static_cast<double>(unpacked) <= limits_.ratio * static_cast<double>(file_bytes_)) {
    return;
  }
  fail(fmt::format("its {} bytes unpack to more than {} times as many: taken for a bomb. If it is "
                   "sound, raise "
                   "ArchiveLimits::ratio",
                   file_bytes_,
                   limits_.ratio),
       unpacked);
}

void ArchiveStream::fail(const std::string& what, int64_t offset) const {
  throw DataError("formats.archive",
                  gzip_ && offset > 0 ? what + ", in the unpacked data" : what,
                  {path_, offset});
}

void ArchiveStream::fail_member(const std::string& what) const {
  throw DataError("formats.archive", what, {place(), -1});
}

int64_t ArchiveStream::header_offset() const {
  return archive_ ? std::max<int64_t>(archive_read_header_position(archive_.get()), 0) : 0;
}

/// Everything that libarchive only warns of is damage too: it would go on with other bytes than
/// were packed.
void ArchiveStream::check_code(int code, const char* step) {
  if (thrown_) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  if (code == ARCHIVE_OK || code == ARCHIVE_EOF) {
    return;
  }
  const char* reason = archive_error_string(archive_.get());
  const std::string what = fmt::format("truncated or damaged: cannot {}: {}. Fetch it again",
                                       step,
                                       reason != nullptr ? reason : "no reason given");
  if (in_member_) {
    throw DataError("formats.archive", what, {place(), header_offset()});
  }
  fail(what, header_offset());
}

void ArchiveStream::check_entry(archive_entry* entry) const {
  const std::string& name = current_.name;
  if (name.size() > kLongestName) {
    fail_member(fmt::format("suspicious member: its name has more than {} bytes", kLongestName));
  }
  if (name.starts_with('/') || has_parent_step(name)) {
    fail_member(
        "suspicious member: its name leads out of the archive. Do not unpack this file by other "
        "means");
  }
  if (archive_entry_hardlink(entry) != nullptr) {
    fail_member(
        "suspicious member: a link to another one. Pack the files themselves (tar "
        "--hard-dereference)");
  }
  const auto type = archive_entry_filetype(entry);
  if (type == AE_IFDIR) {
    return;
  }
  if (type != AE_IFREG) {
    fail_member(fmt::format("suspicious member: {}. Pack the files themselves (tar --dereference)",
                            type_name(entry)));
  }
  if (archive_entry_sparse_count(entry) > 0) {
    fail_member("a sparse file: its holes would take memory. Pack it without --sparse");
  }
  if (name.empty() || archive_entry_size_is_set(entry) == 0 || archive_entry_size(entry) < 0) {
    fail_member("suspicious member: no name or no size");
  }
}

std::optional<ArchiveMember> ArchiveStream::next() {
  const Utf8Names names;
  while (true) {
    in_member_ = false;
    archive_entry* entry = nullptr;
    const int code = archive_read_next_header(archive_.get(), &entry);
    check_code(code, "read the next header");
    if (code == ARCHIVE_EOF) {
      check_end();
      return std::nullopt;
    }
    if (++members_ > limits_.members) {
      fail(fmt::format("more than {} members. If it is sound, raise ArchiveLimits::members",
                       limits_.members),
           header_offset());
    }
    const char* name = archive_entry_pathname(entry);
    current_ = {name == nullptr ? std::string() : std::string(without_dot(name)),
                archive_entry_size(entry)};
    position_ = 0;
    check_entry(entry);
    if (archive_entry_filetype(entry) == AE_IFREG) {
      in_member_ = true;
      return current_;
    }
  }
}

std::span<const uint8_t> ArchiveStream::next_piece() {
  while (in_member_) {
    const void* data = nullptr;
    size_t size = 0;
    la_int64_t offset = 0;
    const int code = archive_read_data_block(archive_.get(), &data, &size, &offset);
    check_code(code, "read its data");
    if (code == ARCHIVE_EOF) {
      in_member_ = false;
      if (position_ != current_.size) {
        fail_member(fmt::format(
            "damaged: its header promises {} bytes, {} came", current_.size, position_));
      }
      break;
    }
    if (size == 0) {
      continue;
    }
    if (offset != position_ || static_cast<int64_t>(size) > current_.size - position_) {
      fail_member(fmt::format(
          "damaged: bytes at {} where {} of {} were expected", offset, position_, current_.size));
    }
    position_ += static_cast<int64_t>(size);
    if (kind_ == ArchiveKind::kZip) {
      unpacked_ += static_cast<int64_t>(size);
      check_ratio(unpacked_);
    }
    return {static_cast<const uint8_t*>(data), size};
  }
  return {};
}

/// libarchive takes the end of the file for the end of the archive: one that was cut between two
/// members would pass. It is whole only if its end marker is there.
void ArchiveStream::check_end() {
  if (kind_ != ArchiveKind::kTar) {
    return;
  }
  const int64_t marker = header_offset();
  if (gzip_) {
    while (fill() > 0) {  // verifies the checksum too
    }
  } else {
    const auto bytes = mapping();
    const auto last =
        std::find_if(bytes.rbegin(), bytes.rend(), [](uint8_t byte) { return byte != 0; });
    zeros_from_ = last.base() - bytes.begin();
  }
  check_tar_end(marker);
}

void ArchiveStream::check_tar_end(int64_t marker) {
  const int64_t end = gzip_ ? gzip_->position() : file_bytes_;
  if (end - marker < static_cast<int64_t>(kEndBlocks * kBlock)) {
    fail(
        "truncated: the file ends without an archive's two closing blocks of zeros. Fetch it again",
        end);
  }
  if (zeros_from_ > marker) {
    fail(
        "trailing bytes after the archive's end. The file is damaged or two were joined; fetch it "
        "again",
        marker);
  }
}

}  // namespace argosy::formats
