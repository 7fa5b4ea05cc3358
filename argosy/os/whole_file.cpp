#include "argosy/os/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

namespace argosy::os {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
/// What is on its way to the disk, at most twice.
constexpr size_t kWindowBytes = size_t{8} << 20;

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// A name beside `path` that this process did not use before; another machine's may have.
std::string name_beside(const std::string& path) {
  static std::atomic<int> count{0};
  return fmt::format("{}.{}.{}.tmp", path, ::getpid(), count++);
}

/// Where linkat() finds a file that has no name.
std::string link_of(const UniqueFd& fd) {
  return fmt::format("/proc/self/fd/{}", fd.get());
}

/// A file without a name, on the file system of `path`; none where that or /proc is wanting.
UniqueFd open_nameless(const std::string& path, mode_t mode) {
  auto fd = open_file(folder_of(path), O_WRONLY | O_TMPFILE, mode);
  if (!fd.ok() || ::access(link_of(*fd).c_str(), F_OK) != 0) {
    return {};
  }
  return *std::move(fd);
}

Status rename_to(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0
             ? Status()
             : Failure::from_errno("cannot rename to this name", errno);
}

}  // namespace

Result<WholeFile> WholeFile::create(std::string path, const WholeFileOptions& options) {
  WholeFile file(std::move(path), options);
  if (Status opened = file.open(); !opened.ok()) {
    return std::move(opened).failure();
  }
  return file;
}

WholeFile::WholeFile(std::string path, const WholeFileOptions& options)
    : path_(std::move(path)), options_(options) {}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : path_(std::move(other.path_)),
      options_(other.options_),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      buffer_(std::move(other.buffer_)),
      position_(other.position_),
      sent_(other.sent_),
      before_(other.before_),
      window_(other.window_),
      status_(std::move(other.status_)) {}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

Status WholeFile::open() {
  if (options_.name == WholeFileOptions::Name::kWhenCommitted) {
    fd_ = open_nameless(path_, options_.mode);
  }
  while (!fd_) {
    std::string name = name_beside(path_);
    auto fd = open_file(name, O_WRONLY | O_CREAT | O_EXCL, options_.mode);
    if (fd.ok()) {
      fd_ = *std::move(fd);
      temporary_ = std::move(name);
    } else if (fd.failure().error_number != EEXIST) {
      return Failure::from_errno("cannot write", fd.failure().error_number);
    }
  }
  buffer_.reserve(kBufferBytes);  // write() does not allocate
  return {};
}

void WholeFile::write(std::span<const std::byte> bytes) noexcept {
  position_ += static_cast<int64_t>(bytes.size());
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    flush();
  }
  if (bytes.size() <= kBufferBytes) {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  } else {
    put(bytes);
  }
}

void WholeFile::put(std::span<const std::byte> bytes) noexcept {
  while (status_.ok() && !bytes.empty()) {
    const auto room = kWindowBytes - static_cast<size_t>(window_);
    const auto now = bytes.first(std::min(bytes.size(), room));
    if (const Status written = write_all(fd_.get(), now); !written.ok()) {
      status_ = Failure::from_errno("cannot write", written.failure().error_number);
      return;
    }
    window_ += static_cast<int64_t>(now.size());
    if (window_ == static_cast<int64_t>(kWindowBytes)) {
      send_window();
    }
    bytes = bytes.subspan(now.size());
  }
}

// Pages that wait for the disk count as this process's memory where a cgroup limits it, and the
// out-of-memory killer comes for a file that a slow disk has not taken yet.
void WholeFile::send_window() noexcept {
  if (options_.disk == WholeFileOptions::Disk::kNot) {
    window_ = 0;
    return;
  }
  const auto sync = [&](int64_t from, int64_t size, unsigned what) {
    const bool fails = size > 0 && ::sync_file_range(fd_.get(), from, size, what) != 0;
    const bool cannot = errno == ENOSYS || errno == EINVAL || errno == ESPIPE || errno == EPERM ||
                        errno == EOPNOTSUPP;
    if (fails && !cannot) {  // told once only
      status_ = Failure::from_errno("cannot bring to the disk", errno);
    }
  };
  sync(sent_, window_, SYNC_FILE_RANGE_WRITE);
  sync(sent_ - before_,
       before_,
       SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  sent_ += window_;
  before_ = std::exchange(window_, 0);
}

void WholeFile::rewrite(int64_t at, std::span<const std::byte> bytes) noexcept {
  flush();
  while (status_.ok() && !bytes.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), at);
    if (written >= 0) {
      at += written;
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      status_ = Failure::from_errno("cannot write", errno);
    }
  }
}

void WholeFile::flush() noexcept {
  put(buffer_);
  buffer_.clear();
}

/// linkat() replaces nothing: the file is named beside its place, and renamed at once.
Status WholeFile::give_name() {
  int result = -1;
  std::string name;
  do {
    name = name_beside(path_);
    result = ::linkat(AT_FDCWD, link_of(fd_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  } while (result != 0 && errno == EEXIST);
  if (result != 0) {
    return Failure::from_errno("cannot give it a name", errno);
  }
  temporary_ = std::move(name);
  return {};
}

Status WholeFile::commit() {
  flush();
  const bool synced = options_.disk == WholeFileOptions::Disk::kSynced;
  if (status_.ok() && synced && ::fsync(fd_.get()) != 0) {
    status_ = Failure::from_errno("cannot bring to the disk", errno);
  }
  if (status_.ok() && temporary_.empty()) {
    status_ = give_name();
  }
  if (!status_.ok()) {
    return status_;
  }
  fd_.close();
  status_ = rename_to(temporary_, path_);
  if (status_.ok()) {
    temporary_.clear();
    status_ = synced ? sync_folder(folder_of(path_)) : Status();
  }
  return status_;
}

Status write_whole(const std::string& path,
                   std::string_view bytes,
                   const WholeFileOptions& options) {
  Result<WholeFile> file = WholeFile::create(path, options);
  if (!file.ok()) {
    return std::move(file).failure();
  }
  file->write(bytes);
  return file->commit();
}

Status move_into_place(const std::string& from, const std::string& to) {
  Status renamed = rename_to(from, to);
  return renamed.ok() ? sync_folder(folder_of(to)) : renamed;
}

Status sync_folder(const std::string& folder) {
  const auto cannot = [](int error) {
    return error == EACCES || error == EINVAL || error == ENOTSUP || error == EPERM;
  };
  auto fd = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) {
    const int error = fd.failure().error_number;
    return cannot(error) ? Status() : Failure::from_errno("cannot open its folder", error);
  }
  if (::fsync(fd->get()) != 0 && !cannot(errno)) {
    return Failure::from_errno("cannot bring its name to the disk", errno);
  }
  return {};
}

}  // namespace argosy::os
