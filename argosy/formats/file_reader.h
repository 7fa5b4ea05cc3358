#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace argosy::formats {

/// Reads a regular file from front to back, unpacking gzip on the way.
///
///     FileReader reader("train-images-idx3-ubyte.gz");
///     std::array<uint8_t, 16> header;
///     if (reader.read(header) < header.size()) ...  // the file ends here
///
/// It recognises gzip by the first two bytes, not by the name. A gzip file may have several
/// members, which are joined, and zeros after the last one, as on tapes. Anything else that follows
/// is an error, because it usually comes from a torn or mixed-up download.
/// Not thread-safe. Memory: fixed buffers of 160 KiB, whatever the file claims.
/// Errors: DataError with path and byte offset when the file cannot be opened or read, is not
/// regular, is truncated or corrupt, or has a wrong checksum or length.
class FileReader final {
 public:
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(FileReader&&) noexcept;
  FileReader& operator=(FileReader&&) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Fills `out`. Returns less than its size only at the end of the data. The checksum of a gzip
  /// member is verified when its last byte has been read *and* read() was called once more, so read
  /// until it returns 0.
  size_t read(std::span<uint8_t> out);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] bool compressed() const;
  /// Returns the number of (unpacked) bytes read so far.
  [[nodiscard]] int64_t position() const;
  /// Returns the most bytes of data that the file can hold: its size, or the most that deflate can
  /// make of it. A length field that promises more is wrong, so nothing need be allocated for it.
  [[nodiscard]] int64_t most_bytes() const;
  /// Returns a guess of position() at the end of the data, as if all of it packs like the part that
  /// was read. Use it to reserve memory. Damage can make it any number up to most_bytes().
  [[nodiscard]] int64_t expected_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::formats
