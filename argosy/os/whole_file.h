#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

struct WholeFileOptions {
  enum class Disk : uint8_t {
    /// commit() returns when the bytes and the name would survive a power cut. No more than 16 MiB
    /// wait for the disk in memory, where the system can tell (`sync_file_range()`).
    kSynced,
    kNot  ///< for files that are soon written again: pages, reports
  };
  enum class Name : uint8_t {
    kWhenCommitted,  ///< if the file system has nameless files, else as kAtOnce
    kAtOnce
  };
  Disk disk = Disk::kSynced;
  Name name = Name::kWhenCommitted;
  mode_t mode = 0666;  ///< before the umask
};

/// A file that appears whole or not at all. A former file of that name stays until commit().
///
///     Result<WholeFile> file = WholeFile::create("out.rec");
///     if (!file.ok()) return std::move(file).failure();
///     file->write(bytes);
///     return file->commit();
///
/// Without commit() nothing is left behind, however the process ends. The exception is a file
/// system without nameless files (O_TMPFILE), such as NFS: a process that is killed leaves
/// PATH.PID.N.tmp there. Several processes may write the same file; the last to commit wins. Not
/// thread-safe.
/// Errors: the failure names the step and the system's reason, not the path.
class WholeFile final {
 public:
  [[nodiscard]] static Result<WholeFile> create(std::string path,
                                                const WholeFileOptions& options = {});
  ~WholeFile();
  WholeFile(WholeFile&& other) noexcept;
  WholeFile& operator=(WholeFile&&) = delete;
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  /// Never fails by itself: status() and commit() report the first failure, and nothing is written
  /// after it. It must not throw, because libtorch's writer of zip files would end the process.
  void write(std::span<const std::byte> bytes) noexcept;
  void write(std::string_view text) noexcept { write(std::as_bytes(std::span(text))); }
  /// Replaces bytes that were written before, such as a header that counts what follows it. They
  /// end at position() or earlier. It fails as write() does.
  void rewrite(int64_t at, std::span<const std::byte> bytes) noexcept;
  [[nodiscard]] const Status& status() const { return status_; }
  /// Returns the number of bytes given to write().
  [[nodiscard]] int64_t position() const { return position_; }
  /// Puts the file in place. Call it at most once. Returns the first failure of all steps.
  Status commit();

 private:
  WholeFile(std::string path, const WholeFileOptions& options);
  Status open();
  void flush() noexcept;
  void put(std::span<const std::byte> bytes) noexcept;
  void send_window() noexcept;
  Status give_name();

  std::string path_;
  WholeFileOptions options_;
  std::string temporary_{};  // the file's name until commit(); empty: it has no name
  UniqueFd fd_{};
  std::vector<std::byte> buffer_{};
  int64_t position_ = 0;
  int64_t sent_ = 0;    // bytes on the disk or on their way, from the file's beginning
  int64_t before_ = 0;  // of these, the last that were sent
  int64_t window_ = 0;  // bytes written after them
  Status status_{};
};

/// Writes `bytes` as the whole content of a file; see WholeFile.
Status write_whole(const std::string& path,
                   std::string_view bytes,
                   const WholeFileOptions& options = {});

/// Renames a file whose bytes are on the disk, so that the new name survives a power cut.
Status move_into_place(const std::string& from, const std::string& to);

/// Syncs the names in a folder to the disk. Succeeds when that is impossible: the folder may not be
/// read, or the file system cannot sync folders.
Status sync_folder(const std::string& folder);

}  // namespace argosy::os
