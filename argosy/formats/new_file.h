#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/os/fd.h"

namespace argosy::formats {

/// A file that appears whole or not at all: written without a name where the file system can
/// (O_TMPFILE: ext4, XFS, Btrfs, tmpfs; NFS cannot), brought to the disk, then named. Without
/// finish() nothing is left behind, however the process ends; where it needs a name from the
/// beginning (PATH.PID.N.tmp, in the same folder), a process that is killed leaves that. A file of
/// the name that was there before stays until finish().
///
///     NewFile file("out.rec", "formats.records");
///     file.write(bytes);
///     file.finish();
///
/// Not thread-safe. Several processes may write the same file: the last to finish wins.
/// Errors: DataError(where) with path and the system's reason; after one nothing can be written or
/// finished any more.
class NewFile final {
 public:
  enum class Name {
    kWhenFinished,  ///< where the file system can, else kAtOnce
    kAtOnce
  };

  NewFile(std::string path, std::string where, Name name = Name::kWhenFinished);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::string_view text);
  void write(std::span<const std::byte> bytes);
  /// Bytes written so far.
  [[nodiscard]] int64_t position() const { return position_; }
  /// The file and its name are on the disk when this returns.
  void finish();

 private:
  void flush();
  void give_name();
  void check(const Status& status, std::string_view step);

  std::string path_;
  std::string where_;
  std::string temporary_{};  // its name until finish(); empty: it has none
  os::UniqueFd fd_{};
  std::vector<std::byte> buffer_{};
  int64_t position_ = 0;
};

}  // namespace argosy::formats
