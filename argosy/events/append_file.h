#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "argosy/base/result.h"

namespace argosy::events {

/// What to do if the file exists already.
enum class Existing { kAppend, kRefuse };

/// A file that grows by whole records. Each record is one write, so a killed program loses at most
/// the record that it was writing. A record that does not fit on the disk is taken back. A file has
/// one writer.
///
/// Not thread-safe. Errors: DataError(where) from the constructor, which also makes the folder.
class AppendFile final {
 public:
  AppendFile(std::string path, const char* where, Existing existing = Existing::kAppend);
  ~AppendFile() { close(); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  AppendFile(AppendFile&&) = delete;
  AppendFile& operator=(AppendFile&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Appends the record whole, or fails and leaves nothing of it.
  Status append(std::string_view record);
  /// Returns when everything appended is on the disk.
  Status sync();
  /// Closes the file. Idempotent. append() fails afterwards (EBADF).
  void close();

 private:
  void take_back(size_t bytes) const;

  std::string path_;
  int fd_ = -1;
};

/// An AppendFile for a log whose loss must not end a training. It drops a record that cannot be
/// written. It logs the first of a row of such records, with the DataError's words, and the first
/// that works again. Thread-safe.
class ForgivingFile final {
 public:
  ForgivingFile(std::string path, const char* where, Existing existing = Existing::kAppend)
      : file_(std::move(path), where, existing), where_(where) {}
  ~ForgivingFile() { close(); }
  ForgivingFile(const ForgivingFile&) = delete;
  ForgivingFile& operator=(const ForgivingFile&) = delete;
  ForgivingFile(ForgivingFile&&) = delete;
  ForgivingFile& operator=(ForgivingFile&&) = delete;

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  /// False: the record was dropped.
  bool append(std::string_view record);
  void sync();
  /// Closes the file. Idempotent. Logs how many records are missing, if any.
  void close();
  [[nodiscard]] int64_t dropped() const;

 private:
  void report(const Failure& failure);

  mutable std::mutex mutex_{};
  AppendFile file_;
  const char* where_;
  int64_t dropped_ = 0;
  bool failing_ = false;
  bool closed_ = false;
};

}  // namespace argosy::events
