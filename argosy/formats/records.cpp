#include "argosy/formats/records.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/formats/record_layout.h"
#include "argosy/os/memory.h"
#include "argosy/os/whole_file.h"

namespace argosy::formats {
namespace {

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool is_text(std::span<const std::byte> bytes, std::string_view text) {
  return std::equal(bytes.begin(),
                    bytes.end(),
                    std::as_bytes(std::span(text)).begin(),
                    std::as_bytes(std::span(text)).end());
}

constexpr std::array<std::byte, 8> kZeros{};

template <typename Number>
void append_number(std::vector<std::byte>& bytes, Number number) {
  const auto raw = layout::to_little(number);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

std::vector<std::byte> header(std::string_view metadata) {
  std::vector<std::byte> bytes;
  append_text(bytes, layout::kMagic);
  append_number(bytes, layout::kVersion);
  append_number(bytes, uint32_t{0});
  append_number(bytes, static_cast<uint64_t>(metadata.size()));
  const uint64_t seed = layout::checksum(bytes, 0);
  append_number(bytes, layout::checksum(std::as_bytes(std::span(metadata)), seed));
  append_text(bytes, metadata);
  bytes.resize(bytes.size() + layout::padding(bytes.size()));
  return bytes;
}

}  // namespace

struct RecordReader::Impl {
  std::string path;
  os::Mapping mapping{};
  std::span<const std::byte> file{};
  std::span<const std::byte> metadata{};
  uint64_t first = 0;  // where the first record begins
  uint64_t index = 0;  // where the index begins, and the records end
  uint64_t records = 0;

  explicit Impl(std::string name) : path(std::move(name)) {
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored) &&
        !std::filesystem::is_regular_file(path, ignored)) {  // a pipe would wait for a writer
      throw DataError("formats.open", "expected a regular file", {path});
    }
    auto mapped = os::map_file(path);
    if (!mapped.ok()) {
      throw DataError(
          "formats.open", "cannot open: " + errno_message(mapped.failure().error_number), {path});
    }
    mapping = *std::move(mapped);
    file = mapping.bytes();
    read_header();
    read_footer();
  }

  [[noreturn]] void fail(uint64_t offset, const std::string& what, int64_t number = -1) const {
    throw DataError("formats.records", what, {path, static_cast<int64_t>(offset), number});
  }

  [[nodiscard]] uint64_t number_at(uint64_t offset) const {
    return layout::from_little<uint64_t>(file.data() + offset);
  }

  void read_header() {
    if (file.size() < layout::kHeaderBytes || !is_text(file.first(8), layout::kMagic)) {
      fail(0,
           fmt::format("not a record file: expected {} bytes of header that begin with "
                       "\"ARGOREC\"",
                       layout::kHeaderBytes));
    }
    const auto version = layout::from_little<uint32_t>(file.data() + 8);
    if (version != layout::kVersion) {
      fail(8,
           fmt::format("version {} of the format: this program reads version {}",
                       version,
                       layout::kVersion));
    }
    const uint64_t bytes = number_at(16);
    if (bytes > RecordWriter::kMostMetadataBytes || bytes > file.size() - layout::kHeaderBytes) {
      fail(16, fmt::format("torn or damaged: {} bytes of metadata", bytes));
    }
    metadata = file.subspan(layout::kHeaderBytes, bytes);
    if (layout::checksum(metadata, layout::checksum(file.first(24), 0)) != number_at(24)) {
      fail(0, "damaged: the header's checksum is wrong. Make the file again");
    }
    first = layout::kHeaderBytes + bytes;
    const uint64_t zeros = std::min(layout::padding(first), file.size() - first);
    if (!all_zero(file.subspan(first, zeros))) {
      fail(first, "damaged: expected zeros behind the metadata");
    }
    first += zeros;
  }

  void read_footer() {
    const uint64_t size = file.size();
    if (size < first + layout::kFooterBytes || size % 8 != 0 ||
        !is_text(file.last(8), layout::kEndMagic)) {
      fail_torn();
    }
    const uint64_t footer = size - layout::kFooterBytes;
    index = number_at(footer);
    records = number_at(footer + 8);
    if (index < first || index > footer || (footer - index) % 8 != 0 ||
        (footer - index) / 8 != records) {
      fail(footer,
           fmt::format("damaged: {} records with an index at byte {} do not fit the file of {} "
                       "bytes. Make it again",
                       records,
                       index,
                       size));
    }
    const auto offsets = file.subspan(index, footer - index);
    if (layout::checksum(offsets, layout::checksum(file.subspan(footer, 16), 0)) !=
        number_at(footer + 16)) {
      fail(index, "damaged: the index's checksum is wrong. Make the file again");
    }
  }

  /// A file whose end is missing: says where it was torn.
  [[noreturn]] void fail_torn() const {
    uint64_t at = first;
    int64_t whole = 0;
    while (at + layout::kRecordHeaderBytes <= file.size()) {
      const uint64_t bytes = number_at(at);
      const uint64_t rest = file.size() - at - layout::kRecordHeaderBytes;
      if (bytes > rest || layout::padding(bytes) > rest - bytes) {
        break;
      }
      at += layout::kRecordHeaderBytes + bytes + layout::padding(bytes);
      ++whole;
    }
    fail(at,
         fmt::format("torn: the end of the file is missing, and it breaks off in or behind record "
                     "{}. Make or copy it again",
                     whole),
         whole);
  }

  /// Where record `number` begins and ends, by the index.
  [[nodiscard]] std::pair<uint64_t, uint64_t> extent(uint64_t number) const {
    const uint64_t begin = number_at(index + 8 * number);
    const uint64_t end = number + 1 < records ? number_at(index + 8 * (number + 1)) : index;
    if (begin < first || end > index || end < begin || begin % 8 != 0 ||
        end - begin < layout::kRecordHeaderBytes) {
      fail(index + 8 * number,
           fmt::format("damaged: the index has the record from byte {} to {}", begin, end),
           static_cast<int64_t>(number));
    }
    return {begin, end};
  }
};

RecordReader::RecordReader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;
RecordReader& RecordReader::operator=(RecordReader&&) noexcept = default;

int64_t RecordReader::size() const {
  return static_cast<int64_t>(impl_->records);
}

const std::string& RecordReader::path() const {
  return impl_->path;
}

std::string_view RecordReader::metadata() const {
  return {reinterpret_cast<const char*>(impl_->metadata.data()), impl_->metadata.size()};
}

std::span<const std::byte> RecordReader::record(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               "formats.records",
               "record {} is outside the {} records of {}",
               index,
               size(),
               impl_->path);
  const auto number = static_cast<uint64_t>(index);
  const auto [begin, end] = impl_->extent(number);
  const uint64_t bytes = impl_->number_at(begin);
  const uint64_t room = end - begin - layout::kRecordHeaderBytes;
  if (bytes > room || layout::padding(bytes) != room - bytes) {
    impl_->fail(begin,
                fmt::format("damaged: the record claims {} bytes and has room for {}", bytes, room),
                index);
  }
  const auto all = impl_->file.subspan(begin + layout::kRecordHeaderBytes, room);
  const auto payload = all.first(bytes);
  if (layout::checksum(payload, number) != impl_->number_at(begin + 8) ||
      !all_zero(all.subspan(bytes))) {
    impl_->fail(begin, "damaged: the record's checksum is wrong. Make the file again", index);
  }
  return payload;
}

struct RecordWriter::Impl {
  std::string path;
  os::WholeFile file;

  /// The first failure ends it: a disk that is full shows at once, not after the last record.
  void check() const { file.status().or_throw<DataError>("formats.records", DataPlace{path}); }
  std::vector<std::byte> index{};
  int64_t records = 0;
  bool finished = false;
};

RecordWriter::RecordWriter(const std::string& path, std::string_view metadata) {
  ARGOSY_CHECK(metadata.size() <= kMostMetadataBytes,
               "formats.records",
               "metadata must have at most {} bytes, got {}",
               kMostMetadataBytes,
               metadata.size());
  impl_.reset(new Impl{
      .path = path,
      .file = os::WholeFile::create(path).or_throw<DataError>("formats.records", DataPlace{path})});
  impl_->file.write(header(metadata));
}
RecordWriter::~RecordWriter() = default;
RecordWriter::RecordWriter(RecordWriter&&) noexcept = default;
RecordWriter& RecordWriter::operator=(RecordWriter&&) noexcept = default;

void RecordWriter::append(std::span<const std::byte> payload) {
  ARGOSY_CHECK(!impl_->finished, "formats.records", "append() after finish()");
  ARGOSY_CHECK(payload.size() <= kMostRecordBytes,
               "formats.records",
               "a record must have at most {} bytes, got {}",
               kMostRecordBytes,
               payload.size());
  append_number(impl_->index, static_cast<uint64_t>(impl_->file.position()));
  const auto number = static_cast<uint64_t>(impl_->records++);
  impl_->file.write(layout::to_little(static_cast<uint64_t>(payload.size())));
  impl_->file.write(layout::to_little(layout::checksum(payload, number)));
  impl_->file.write(payload);
  impl_->file.write(std::span(kZeros).first(layout::padding(payload.size())));
  impl_->check();
}

int64_t RecordWriter::size() const {
  return impl_->records;
}

void RecordWriter::finish() {
  ARGOSY_CHECK(!impl_->finished, "formats.records", "finish() for the second time");
  impl_->finished = true;
  std::vector<std::byte> footer;
  append_number(footer, static_cast<uint64_t>(impl_->file.position()));
  append_number(footer, static_cast<uint64_t>(impl_->records));
  append_number(footer, layout::checksum(impl_->index, layout::checksum(footer, 0)));
  append_text(footer, layout::kEndMagic);
  impl_->file.write(impl_->index);
  impl_->file.write(footer);
  (void)impl_->file.commit();
  impl_->check();
}

}  // namespace argosy::formats
