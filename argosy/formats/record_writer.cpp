#include <optional>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/formats/record_layout.h"
#include "argosy/formats/records.h"
#include "argosy/os/whole_file.h"

namespace argosy::formats {
namespace {

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
