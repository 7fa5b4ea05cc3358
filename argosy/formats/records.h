#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace argosy::formats {

/// Writes a record file: records of bytes, each with a checksum, and an index of them at the end.
///
///     RecordWriter out("train.rec", R"({"classes": ["cat", "dog"]})");
///     for (…) out.append(bytes);
///     out.finish();
///
/// The file appears with finish(), whole and on the disk. A writer that is destroyed before leaves
/// nothing. All numbers of the layout are little-endian, and everything starts at multiples of 8
/// bytes:
///
///     header  8 bytes magic "ARGOREC\n" · u32 version = 1 · u32 0 · u64 metadata bytes ·
///             u64 checksum of what stands before it and of the metadata · metadata · zeros to 8
///     record  u64 payload bytes · u64 checksum of the payload, seeded with the record's number ·
///             payload · zeros to 8
///     index   u64 offset of each record
///     footer  u64 offset of the index · u64 records · u64 checksum of the index and of the two
///             before it · 8 bytes magic "ARGOEND\n"
///
/// Checksums are XXH3 (64 bits). Metadata is a JSON object of at most 16 MiB; this layer does not
/// look into it. Not thread-safe.
/// Errors: DataError with path when the file cannot be written; UsageError for an append() after
/// finish(), too much metadata, or a record above kMostRecordBytes.
class RecordWriter final {
 public:
  static constexpr size_t kMostRecordBytes = size_t{1} << 32;
  static constexpr size_t kMostMetadataBytes = size_t{16} << 20;

  RecordWriter(const std::string& path, std::string_view metadata);
  ~RecordWriter();
  RecordWriter(RecordWriter&&) noexcept;
  RecordWriter& operator=(RecordWriter&&) noexcept;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Adds a record. Its number is the number of records before it.
  void append(std::span<const std::byte> payload);
  [[nodiscard]] int64_t size() const;
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a record file through a mapping, whose pages any number of readers and processes share.
///
///     RecordReader in("train.rec");
///     std::span<const std::byte> bytes = in.record(7);
///
/// The constructor checks header, index and footer, and touches no record. record() checks the
/// record that it returns.
/// Thread-safe: everything is const. The file must not be cut short while it is open, or a reader
/// dies by SIGBUS; a rename over it is fine.
/// Errors: DataError with path and offset, and for records with their number as index. The file is
/// not a record file, has a newer version, is torn (the message says which record is the last whole
/// one), or is damaged.
/// Lifetime: the results of record() and metadata() live as long as the reader.
/// Cost: no memory but the mapping; checksums run at 18 GB/s.
class RecordReader final {
 public:
  explicit RecordReader(const std::string& path);
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;
  RecordReader& operator=(RecordReader&&) noexcept;
  RecordReader(const RecordReader&) = delete;
  RecordReader& operator=(const RecordReader&) = delete;

  [[nodiscard]] int64_t size() const;
  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] std::string_view metadata() const;
  /// Returns the payload of record `index`. It begins on a multiple of 8 bytes.
  /// Errors: UsageError when the index is outside [0, size()); DataError when the record is
  /// damaged.
  [[nodiscard]] std::span<const std::byte> record(int64_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::formats
