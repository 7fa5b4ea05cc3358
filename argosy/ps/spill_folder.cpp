#include "argosy/ps/spill_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "argosy/base/log.h"
#include "argosy/os/folder_lock.h"

namespace argosy::ps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLocked = "argosy-rows-";
/// Before it is locked nobody may take it for one that a killed process has left.
constexpr std::string_view kNew = "argosy-new-rows-";

bool is_abandoned(const fs::path& folder) {
  const Result<os::UniqueFd> fd =
      os::open_file(folder.string(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat info {};
  if (!fd.ok() || ::fstat(fd->get(), &info) != 0 || info.st_uid != ::geteuid()) {
    return false;
  }
  const Result<bool> is_free = os::try_flock(*fd);
  return is_free.ok() && *is_free;
}

void remove_abandoned(const fs::path& directory) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(directory, error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with(kLocked) && is_abandoned(path)) {
      std::error_code failed;
      fs::remove_all(path, failed);
      log::info("[ps.disk] {}: rows of a server that was killed are removed{}",
                path.string(),
                failed ? ", but for some: " + failed.message() : "");
    }
  }
}

std::string made_in(const fs::path& directory) {
  std::string path = (directory / kNew).string() + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    throw DiskError(directory.string(), "make a folder for rows", errno_message(errno));
  }
  return path;
}

}  // namespace

DiskError::DiskError(const std::string& folder,
                     const std::string& what,
                     const std::string& why,
                     const char* advice)
    : Error("ps.disk", fmt::format("{}: cannot {}: {}. {}", folder, what, why, advice)) {}

SpillFolder::SpillFolder(const std::string& directory) {
  std::error_code error;
  const fs::path there = directory.empty() ? fs::temp_directory_path(error) : fs::path(directory);
  if (!error) {
    fs::create_directory(there, error);  // the folders above it may be misspelt
  }
  if (error) {
    throw DiskError(there.string(), "make this folder", error.message());
  }
  remove_abandoned(there);
  const fs::path made = made_in(there);
  Result<os::UniqueFd> lock = os::lock_folder(made.string(), {.needed = false});
  if (lock.ok()) {
    lock_ = std::move(*lock);
  }
  path_ = (there / kLocked).string() + made.filename().string().substr(kNew.size());
  fs::rename(made, path_, error);
  if (error) {
    fs::remove(made, error);
    throw DiskError(there.string(), "rename a folder for rows", error.message());
  }
  struct statfs system {};
  if (::statfs(path_.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC) {
    log::warn("[ps.disk] {} lies in memory (tmpfs). Name a folder on a disk in spill_directory",
              there.string());
  }
}

SpillFolder::~SpillFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
  if (error) {
    log::warn("[ps.disk] {}: not all of it could be removed: {}", path_, error.message());
  }
}

}  // namespace argosy::ps
