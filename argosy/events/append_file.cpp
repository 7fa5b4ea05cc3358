#include "argosy/events/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"

namespace argosy::events {

AppendFile::AppendFile(std::string path, const char* where, Existing existing)
    : path_(std::move(path)) {
  std::error_code ignored;  // open() tells what is wrong
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const int refuse = existing == Existing::kRefuse ? O_EXCL : 0;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | refuse, 0666);
  if (fd_ < 0) {
    throw DataError(where, "cannot open for writing: " + errno_message(errno), {path_});
  }
}

void AppendFile::close() {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

/// The first bytes of a record that did not fit on the disk would make one broken record with the
/// next.
void AppendFile::take_back(size_t bytes) const {
  const off_t end = ::lseek(fd_, 0, SEEK_END);
  if (bytes > 0 && end >= static_cast<off_t>(bytes)) {
    (void)!::ftruncate(fd_, end - static_cast<off_t>(bytes));
  }
}

Status AppendFile::append(std::string_view record) {
  size_t done = 0;
  while (done < record.size()) {
    const ssize_t n = ::write(fd_, record.data() + done, record.size() - done);
    if (n < 0 && errno != EINTR) {
      const int error = errno;
      take_back(done);
      return Failure::from_errno("cannot write", error);
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
  return {};
}

Status AppendFile::sync() {
  if (::fdatasync(fd_) != 0 && errno != EINVAL) {  // EINVAL: a pipe or device, which has no disk
    return Failure::from_errno("cannot bring to the disk", errno);
  }
  return {};
}

bool ForgivingFile::append(std::string_view record) {
  const std::lock_guard lock(mutex_);
  const Status status = file_.append(record);
  if (!status.ok()) {
    ++dropped_;
    report(status.failure());
    return false;
  }
  if (std::exchange(failing_, false)) {
    log::warn("[{}] {}: can be written again; {} records are missing", where_, path(), dropped_);
  }
  return true;
}

void ForgivingFile::sync() {
  const std::lock_guard lock(mutex_);
  if (const Status status = file_.sync(); !status.ok()) {
    report(status.failure());
  }
}

void ForgivingFile::report(const Failure& failure) {
  if (!std::exchange(failing_, true)) {
    const DataError error(where_, failure.what, {path()});
    log::error("{}. The program continues; what does not fit is left out.", error.what());
  }
}

void ForgivingFile::close() {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(closed_, true) && dropped_ > 0) {
    log::error(
        "[{}] {}: {} records are missing: they could not be written", where_, path(), dropped_);
  }
  file_.close();
}

int64_t ForgivingFile::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace argosy::events
