#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/formats/archive.h"
#include "argosy/formats/file_reader.h"
#include "argosy/formats/shown_name.h"
#include "argosy/os/memory.h"

struct archive;
struct archive_entry;

namespace argosy::formats {

/// Reads an archive by libarchive, with this room's errors and limits. Members come in order. Their
/// bytes come in pieces, without a copy if they lie in memory already.
class ArchiveStream final {
 public:
  ArchiveStream(std::string path, const ArchiveLimits& limits);
  ~ArchiveStream() = default;
  ArchiveStream(const ArchiveStream&) = delete;  // libarchive knows its address
  ArchiveStream& operator=(const ArchiveStream&) = delete;

  [[nodiscard]] std::optional<ArchiveMember> next();
  /// Returns the current member's next bytes. They are valid until the next call of any function;
  /// those inside mapping() as long as it. Empty: the member has ended.
  [[nodiscard]] std::span<const uint8_t> next_piece();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const ArchiveLimits& limits() const { return limits_; }
  /// Returns the whole file if it is plain. Empty if it is compressed.
  [[nodiscard]] std::span<const uint8_t> mapping() const;
  /// Hands out mapping(), which then outlives the stream. The stream must not be used afterwards.
  [[nodiscard]] os::Mapping take_mapping() { return std::move(mapping_); }
  /// Return the name of the current member, and the path with it.
  [[nodiscard]] const ArchiveMember& current() const { return current_; }
  [[nodiscard]] std::string place() const { return path_ + ":" + shown_name(current_.name); }

  /// Throws a DataError about the current member.
  [[noreturn]] void fail_member(const std::string& what) const;

 private:
  struct Close {
    void operator()(archive* handle) const;
  };

  static long on_read(archive* handle, void* self, const void** buffer);
  void open();
  size_t fill();
  void check_ratio(int64_t unpacked) const;
  void check_code(int code, const char* step);
  void check_entry(archive_entry* entry) const;
  void check_end();
  void check_tar_end(int64_t marker);
  [[nodiscard]] int64_t header_offset() const;
  [[noreturn]] void fail(const std::string& what, int64_t offset) const;

  std::string path_;
  ArchiveLimits limits_;
  int64_t file_bytes_ = 0;
  ArchiveKind kind_ = ArchiveKind::kNone;
  os::Mapping mapping_;             // plain files
  std::optional<FileReader> gzip_;  // compressed ones, through buffer_
  std::vector<uint8_t> buffer_;
  size_t filled_ = 0;          // of buffer_, when it waits to be given to libarchive
  int64_t zeros_from_ = 0;     // the unpacked data so far is zero from here on
  std::exception_ptr thrown_;  // by gzip_ inside libarchive's C
  std::unique_ptr<archive, Close> archive_;
  int64_t members_ = 0;
  ArchiveMember current_;
  int64_t position_ = 0;  // in the current member
  int64_t unpacked_ = 0;  // of all members of a zip file
  bool in_member_ = false;
};

}  // namespace argosy::formats
