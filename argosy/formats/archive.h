#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace argosy::formats {

enum class ArchiveKind { kNone, kTar, kZip };

/// Returns what `path` holds, by its content: a tar file (plain or inside gzip), a zip file, or
/// neither.
/// Errors: those of FileReader.
[[nodiscard]] ArchiveKind archive_kind(const std::string& path);

/// Limits for an archive. A DataError names the limit that an archive exceeds.
struct ArchiveLimits {
  /// Headers in the archive, wanted or not.
  int64_t members = 10'000'000;
  /// Unpacked bytes of one member that is read whole.
  int64_t member_bytes = int64_t{2} << 30;
  /// Memory for all members of an ArchiveImage and for their names. Bytes that it maps from the
  /// disk do not count.
  int64_t total_bytes = int64_t{8} << 30;
  /// Unpacked bytes for each byte of the file, checked beyond 64 MiB. Pictures have 1 to 2, text 3
  /// to 20, a gzip bomb 1032 (deflate's maximum).
  double ratio = 200;

  /// Errors: UsageError that names the field.
  void validate() const;
};

/// A regular file in an archive.
struct ArchiveMember {
  std::string
      name{};  ///< as in the archive, without a leading "./"; never use it as a path to write to
  int64_t size = 0;  ///< in bytes, unpacked
};

/// Reads a tar, tar.gz or zip file member by member. It writes nothing to disk.
///
///     ArchiveReader reader("cifar-10-binary.tar.gz");
///     while (const std::optional<ArchiveMember> member = reader.next())
///       if (member->name.ends_with(".bin")) use(reader.read_all());
///
/// It recognises the kind by the content, not by the name, and skips folders. The members of a zip
/// file come in the order of its table.
/// Not thread-safe. Memory: some hundred KiB beside what read_all() returns. Plain files are mapped
/// and must not be shortened meanwhile.
/// Errors: DataError with path, and with the offset in the unpacked data or the member's name. The
/// file cannot be opened, is not such an archive, is damaged or truncated (also between two
/// members), has bytes after its end, or exceeds a limit. A name is absolute, has ".." or more than
/// 4096 bytes. A member is a link, a device or a sparse file, which no data set needs.
/// Source: tar by POSIX.1-2001 (pax), GNU's long names, zip by APPNOTE 6.3; read by libarchive.
class ArchiveReader final {
 public:
  explicit ArchiveReader(std::string path, const ArchiveLimits& limits = {});
  ~ArchiveReader();
  ArchiveReader(ArchiveReader&&) noexcept;
  ArchiveReader& operator=(ArchiveReader&&) noexcept;
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  /// Moves to the next regular file, and skips the unread rest of the last one. nullopt: the
  /// archive ends here as it should.
  [[nodiscard]] std::optional<ArchiveMember> next();
  /// Fills `out` from the current member; returns less than its size only at the member's end.
  size_t read(std::span<uint8_t> out);
  /// Returns the rest of the current member.
  [[nodiscard]] std::vector<uint8_t> read_all();

  [[nodiscard]] const std::string& path() const;
  /// Returns "archive.tar.gz:NAME" of the current member, for the path of a DataError.
  [[nodiscard]] std::string place() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Holds the wanted members of an archive in memory, by name and by index.
///
///     ArchiveImage jpegs("102flowers.tgz",
///                        [](std::string_view name) { return name.ends_with(".jpg"); });
///     std::span<const uint8_t> jpeg = jpegs.at("jpg/image_00001.jpg");
///
/// Members of a plain tar file, and members that a zip file stores unpacked, are mapped where they
/// lie on the disk. Packed members are unpacked into one buffer. Thread-safe once constructed.
/// Lifetime: spans are valid as long as the image, moved or not.
/// Errors: as for ArchiveReader; also DataError when a wanted name appears twice.
/// Cost: reads a compressed archive once, whole; reads only the headers of a plain tar file.
class ArchiveImage final {
 public:
  using Wanted = std::function<bool(std::string_view name)>;

  explicit ArchiveImage(std::string path,
                        const Wanted& wanted = {},
                        const ArchiveLimits& limits = {});
  ~ArchiveImage();
  ArchiveImage(ArchiveImage&&) noexcept;
  ArchiveImage& operator=(ArchiveImage&&) noexcept;
  ArchiveImage(const ArchiveImage&) = delete;
  ArchiveImage& operator=(const ArchiveImage&) = delete;

  /// Returns the number of members. They are numbered in the archive's order.
  [[nodiscard]] size_t size() const;
  [[nodiscard]] const std::string& name(size_t index) const;
  [[nodiscard]] std::span<const uint8_t> bytes(size_t index) const;

  [[nodiscard]] std::optional<size_t> find(std::string_view name) const;
  /// Returns the bytes of a member. Errors: DataError when there is no such member.
  [[nodiscard]] std::span<const uint8_t> at(std::string_view name) const;

  [[nodiscard]] const std::string& path() const;
  /// Returns "archive.tar.gz:NAME", for the path of a DataError.
  [[nodiscard]] std::string place(size_t index) const;
  /// Returns the memory that the unpacked members take. Mapped members take none.
  [[nodiscard]] size_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace argosy::formats
