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

/// A file that was not there before.
Result<os::UniqueFd> create_beside(const std::string& path, std::string& temporary) {
  static std::atomic<int> count{0};
  while (true) {
    temporary = fmt::format("{}.{}.{}.tmp", path, ::getpid(), count++);
    auto fd = os::open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd.ok() || fd.failure().error_number != EEXIST) {
      return fd;
    }
  }
}

}  // namespace

NewFile::NewFile(std::string path, std::string where)
    : path_(std::move(path)), where_(std::move(where)) {
  auto fd = create_beside(path_, temporary_);
  if (!fd.ok()) {
    temporary_.clear();
    throw DataError(where_, "cannot write: " + errno_message(fd.failure().error_number), {path_});
  }
  fd_ = *std::move(fd);
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

void NewFile::finish() {
  flush();
  check(from_errno(::fsync(fd_.get())), "bring to the disk");
  fd_.close();
  check(from_errno(std::rename(temporary_.c_str(), path_.c_str())), "rename to this name");
  temporary_.clear();
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  auto fd = os::open_file(folder.empty() ? "." : folder.string(), O_RDONLY | O_DIRECTORY);
  if (fd.ok()) {
    check(from_errno(::fsync(fd->get())), "bring the name to the disk");
  } else {
    check(std::move(fd).failure(), "open the folder of");
  }
}

}  // namespace argosy::formats
