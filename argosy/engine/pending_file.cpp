#include "argosy/engine/pending_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::engine {

PendingFile::PendingFile(std::string path, std::string where)
    : path_(std::move(path)),
      where_(std::move(where)),
      temporary_(fmt::format("{}.tmp.{}", path_, ::getpid())) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    fail("cannot create", errno);
  }
}

PendingFile::~PendingFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (!committed_) {
    ::unlink(temporary_.c_str());
  }
}

std::size_t PendingFile::write(const void* data, std::size_t size) noexcept {
  const char* position = static_cast<const char*>(data);
  std::size_t left = size;
  while (left > 0 && write_error_ == 0) {
    const ssize_t written = ::write(fd_, position, left);
    if (written >= 0) {
      position += written;
      left -= static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      write_error_ = errno;
    }
  }
  return size;
}

void PendingFile::commit() {
  if (write_error_ != 0) {
    fail("cannot write", write_error_);
  }
  if (::fsync(fd_) != 0) {
    fail("cannot fsync", errno);
  }
  if (::close(std::exchange(fd_, -1)) != 0) {
    fail("cannot close", errno);
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("cannot rename into place", errno);
  }
  committed_ = true;
  sync_folder();
}

void PendingFile::fail(std::string_view what, int error_number) const {
  throw CheckpointError(where_,
                        fmt::format("{} {}: {}. The former file, if any, is untouched.",
                                    what,
                                    temporary_,
                                    errno_message(error_number)),
                        {path_, {}});
}

void PendingFile::sync_folder() const {  // without it the new name may not survive a power cut
  const std::string parent = std::filesystem::path(path_).parent_path().string();
  const int folder =
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);  // some file systems cannot; the data itself is safe already
    ::close(folder);
  }
}

}  // namespace argosy::engine
