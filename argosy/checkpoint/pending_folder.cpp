#include "argosy/checkpoint/pending_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/os/folder_lock.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWriting = ".tmp-";
constexpr std::string_view kRemoving = ".old-";
constexpr size_t kPiece = size_t{4} << 20;  // stays in the cache between checksum and write

[[noreturn]] void fail(const std::string& path, std::string_view step, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  const bool closed = code == EACCES || code == EROFS || code == EPERM;
  throw CheckpointError("checkpoint.save",
                        fmt::format("cannot {}: {}. {}Checkpoints that were there are untouched",
                                    step,
                                    errno_message(code),
                                    full     ? "Free some space, or keep fewer (keep_last). "
                                    : closed ? "Give a folder that may be written to. "
                                             : ""),
                        {path, {}});
}

std::string temporary_name(const std::string& place, std::string_view kind) {
  static std::atomic<int> count{0};
  const fs::path path(place);
  return (path.parent_path() /
          fmt::format(".{}{}{}-{}", path.filename().string(), kind, ::getpid(), count++))
      .string();
}

os::UniqueFd open_folder(const std::string& path) {
  auto fd = os::open_file(path, O_RDONLY | O_DIRECTORY);
  return fd.ok() ? *std::move(fd) : os::UniqueFd();
}

/// Is `fd` still what lies at `path`?
bool still_there(const os::UniqueFd& fd, const std::string& path) {
  struct stat own {};
  struct stat other {};
  return ::fstat(fd.get(), &own) == 0 && ::stat(path.c_str(), &other) == 0 &&
         own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

/// Puts `temporary` in the place of what is there, which gets its name.
bool swap_names(const std::string& temporary, const std::string& place) {
  return ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

ManifestFile write_file(const std::string& folder,
                        const std::string& name,
                        const std::vector<std::span<const std::byte>>& pieces) {
  const std::string path = (fs::path(folder) / name).string();
  auto fd = os::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!fd.ok()) {
    fail(path, "create", fd.failure().error_number);
  }
  FileChecksums checksums;
  ManifestFile file{.name = name};
  for (std::span<const std::byte> rest : pieces) {
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), kPiece));
      checksums.update(piece);
      if (const Status status = os::write_all(fd->get(), piece); !status.ok()) {
        fail(path, "write", status.failure().error_number);
      }
      file.bytes += static_cast<int64_t>(piece.size());
      rest = rest.subspan(piece.size());
    }
  }
  if (::fsync(fd->get()) != 0) {
    fail(path, "bring to the disk", errno);
  }
  if (::close(fd->release()) != 0) {  // network file systems tell a full disk here
    fail(path, "close", errno);
  }
  file.checksum = checksums.text();
  file.blocks = checksums.blocks();
  return file;
}

ManifestFile write_file(const std::string& folder, const std::string& name, std::string_view text) {
  return write_file(folder, name, {std::as_bytes(std::span(text))});
}

PendingFolder::PendingFolder(std::string directory, const std::string& name)
    : directory_(std::move(directory)), place_((fs::path(directory_) / name).string()) {
  while (!lock_) {
    temporary_ = temporary_name(place_, kWriting);
    if (::mkdir(temporary_.c_str(), 0777) != 0) {
      if (errno == EEXIST) {
        continue;
      }
      fail(std::exchange(temporary_, {}), "create", errno);
    }
    lock_ = open_folder(temporary_);
    if (!lock_ && errno != ENOENT) {
      fail(temporary_, "open", errno);
    }
    // Who removes leftovers may have come between; without locks (NFS) nobody removes any.
    const Result<bool> ours = os::try_flock(lock_);
    if (lock_ && ((ours.ok() && !*ours) || !still_there(lock_, temporary_))) {
      lock_.close();
    }
  }
}

PendingFolder::~PendingFolder() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
}

void PendingFolder::commit(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  (void)parse_manifest(text, place_);  // what nobody could read would take an older one's place
  write_file(temporary_, std::string(kManifestName), text);
  commit();
}

void PendingFolder::commit() {
  os::sync_folder(temporary_)
      .or_throw<CheckpointError>("checkpoint.save", CheckpointPlace{temporary_});
  if (::rename(temporary_.c_str(), place_.c_str()) == 0) {
    temporary_.clear();
  } else if (errno != EEXIST && errno != ENOTEMPTY) {
    fail(place_, "rename to this name", errno);
  } else if (!swap_names(temporary_, place_)) {
    remove_checkpoint(place_);
    if (::rename(temporary_.c_str(), place_.c_str()) != 0) {
      fail(place_, "rename to this name", errno);
    }
    temporary_.clear();
  }
  os::sync_folder(directory_)
      .or_throw<CheckpointError>(
          "checkpoint.save",
          CheckpointPlace{directory_});  // the destructor deletes what was exchanged
}

bool is_temporary_name(std::string_view name) {
  return name.starts_with('.') && (name.find(kWriting) != std::string_view::npos ||
                                   name.find(kRemoving) != std::string_view::npos);
}

void remove_leftovers(const std::string& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string path = entry.path().string();
    std::error_code ignored;
    if (!is_temporary_name(entry.path().filename().string()) || entry.is_symlink(ignored)) {
      continue;
    }
    const os::UniqueFd fd = open_folder(path);
    if (const Result<bool> ours = os::try_flock(fd); ours.ok() && *ours) {
      fs::remove_all(path, ignored);
    }
  }
}

void remove_checkpoint(const std::string& path) {
  const std::string gone = temporary_name(path, kRemoving);
  if (::rename(path.c_str(), gone.c_str()) != 0) {
    fail(path, "remove", errno);
  }
  std::error_code error;
  fs::remove_all(gone, error);
  if (error) {
    fail(gone, "remove", error.value());
  }
}

}  // namespace argosy::checkpoint
