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
/// Gzip is recognised by its first two bytes, not by the name. A gzip file may have several
/// members (they are joined) and zeros after the last one (as tapes have); anything else that
/// follows is an error, because it is usually a torn or mixed-up download.
/// Not thread-safe. Memory: fixed buffers of 160 KiB, whatever the file claims.
/// Errors: DataError with path and byte offset: cannot open or read, not a regular file,
/// truncated, corrupt, checksum or length wrong.
class FileReader final {
 public:
  explicit FileReader(std::string path);
  ~FileReader();
  FileReader(FileReader&&) noexcept;
  FileReader& operator=(FileReader&&) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Fills `out`; returns less than its size only at the end of the data. A gzip checksum is
  /// verified when its member's last byte has been read *and* read() was called once more, so
  /// read until 0 comes back.
  size_t read(std::span<uint8_t> out);

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] bool compressed() const;
  /// Bytes of (unpacked) data read so far.
  [[nodiscard]] int64_t position() const;
  /// No more bytes of data than this can come out of the file: its size, or what deflate can make
  /// of it at most. A length field that promises more is a lie that needs no allocation.
  [[nodiscard]] int64_t most_bytes() const;
  /// position() at the end of the data, guessed: as if all of it packs like what was read so far.
  /// To reserve memory by; damage makes it any number up to most_bytes().
  [[nodiscard]] int64_t expected_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace argosy::formats
