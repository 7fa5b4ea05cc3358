#include "argosy/formats/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"

namespace argosy::formats {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

Status from_errno(int code) {
  return code == 0 ? Status() : Status(Failure::from_errno("", errno));
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// A name beside `path` that this process did not use before; another machine's may have.
std::string name_beside(const std::string& path) {
  static std::atomic<int> count{0};
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), count++);
}

/// A file that was not there before.
Result<os::UniqueFd> create_beside(const std::string& path, std::string& temporary) {
  while (true) {
    temporary = name_beside(path);
    auto fd = os::open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd.ok() || fd.failure().error_number != EEXIST) {
      return fd;
    }
  }
}

/// Where linkat() finds a file that has no name.
std::string link_of(const os::UniqueFd& fd) {
  return fmt::format("/proc/self/fd/{}", fd.get());
}

/// A file without a name, on the file system of `path`; none where that or /proc is wanting.
os::UniqueFd create_nameless(const std::string& path) {
  auto fd = os::open_file(folder_of(path), O_WRONLY | O_TMPFILE, 0666);
  if (!fd.ok() || ::access(link_of(*fd).c_str(), F_OK) != 0) {
    return {};
  }
  return *std::move(fd);
}

}  // namespace

NewFile::NewFile(std::string path, std::string where, Name name)
    : path_(std::move(path)), where_(std::move(where)) {
  if (name == Name::kWhenFinished) {
    fd_ = create_nameless(path_);
  }
  if (!fd_) {
    auto fd = create_beside(path_, temporary_);
    if (!fd.ok()) {
      temporary_.clear();
      throw DataError(where_, "cannot write: " + errno_message(fd.failure().error_number), {path_});
    }
    fd_ = *std::move(fd);
  }
  buffer_.reserve(kBufferBytes);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void NewFile::check(const Status& status, std::string_view step) {
  if (!status.ok()) {
    fd_.close();  // what lies there is not what was written, so nothing may follow it
    throw DataError(
        where_,
        fmt::format("cannot {}: {}", step, errno_message(status.failure().error_number)),
        {path_});
  }
}

void NewFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void NewFile::write(std::span<const std::byte> bytes) {
  if (!fd_) {
    throw DataError(where_, "cannot go on: an earlier step failed, or it is finished", {path_});
  }
  position_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    flush();
  }
  if (bytes.size() > kBufferBytes) {
    check(os::write_all(fd_.get(), bytes), "write");
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void NewFile::flush() {
  check(os::write_all(fd_.get(), buffer_), "write");
  buffer_.clear();
}

/// linkat() replaces nothing: the file is named beside its place, and renamed at once.
void NewFile::give_name() {
  int result = -1;
  std::string name;
  do {
    name = name_beside(path_);
    result = ::linkat(AT_FDCWD, link_of(fd_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  } while (result != 0 && errno == EEXIST);
  check(from_errno(result), "give it a name");
  temporary_ = std::move(name);
}

void NewFile::finish() {
  flush();
  check(from_errno(::fsync(fd_.get())), "bring to the disk");
  if (temporary_.empty()) {
    give_name();
  }
  fd_.close();
  check(from_errno(std::rename(temporary_.c_str(), path_.c_str())), "rename to this name");
  temporary_.clear();
  auto fd = os::open_file(folder_of(path_), O_RDONLY | O_DIRECTORY);
  if (fd.ok()) {
    check(from_errno(::fsync(fd->get())), "bring the name to the disk");
  } else {
    check(std::move(fd).failure(), "open the folder of");
  }
}

}  // namespace argosy::formats
