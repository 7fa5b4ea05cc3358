#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "argosy/base/result.h"

namespace argosy::events {

/// What a file that is there already means.
enum class Existing { kAppend, kRefuse };

/// A file that grows by whole records, each with one write: a killed program loses at most the one
/// it was writing, and what does not fit on the disk is taken back. One writer to a file.
///
/// Not thread-safe. Errors: DataError(where) from the constructor, which makes the folder too.
class AppendFile final {
 public:
  AppendFile(std::string path, const char* where, Existing existing = Existing::kAppend);
  ~AppendFile() { close(); }
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  AppendFile(AppendFile&&) = delete;
  AppendFile& operator=(AppendFile&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The record is in the file, or nothing of it is.
  Status append(std::string_view record);
  /// What was appended is on the disk when this returns.
  Status sync();
  /// Idempotent; afterwards nothing can be appended (EBADF).
  void close();

 private:
  void take_back(size_t bytes) const;

  std::string path_;
  int fd_ = -1;
};

/// An AppendFile of a log that is not worth a training: a record that cannot be written is dropped,
/// and the first of a row of such is told in the log, with the DataError's words; so is that it
/// works again. Thread-safe.
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
  /// False: it was dropped.
  bool append(std::string_view record);
  void sync();
  /// Idempotent; says how many records are missing, where some are.
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
