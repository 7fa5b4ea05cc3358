#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Internal to the room: how files of weights are written.
namespace argosy::engine {

/// A file that takes its final name only in commit(); dropped before, it leaves nothing behind.
///
/// Errors: CheckpointError in the name of `where`, from the constructor and from commit().
class PendingFile final {
 public:
  PendingFile(std::string path, std::string where);
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  /// Never throws and always claims success: libtorch's zip writer ends the process when its last
  /// write fails (it finishes the archive in its destructor). commit() reports the first failure.
  std::size_t write(const void* data, std::size_t size) noexcept;

  /// fsync, rename, fsync of the folder.
  void commit();

 private:
  [[noreturn]] void fail(std::string_view what, int error_number) const;
  void sync_folder() const;

  std::string path_;
  std::string where_;
  std::string temporary_;
  int fd_ = -1;
  int write_error_ = 0;
  bool committed_ = false;
};

}  // namespace argosy::engine
