#include "argosy/os/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/os/addresses.h"

namespace argosy::os {
namespace {

namespace fs = std::filesystem;

/// The process of this machine that holds the lock, as the kernel knows it; empty: not here.
std::string local_holder(const UniqueFd& fd) {
  struct stat info {};
  std::ifstream locks("/proc/locks");
  for (std::string line; ::fstat(fd.get(), &info) == 0 && std::getline(locks, line);) {
    // 1: FLOCK  ADVISORY  WRITE 4127 08:01:131090 0 EOF
    std::istringstream words(line);
    std::string number, kind, advice, access, file;
    int64_t pid = 0;
    words >> number >> kind >> advice >> access >> pid >> file;
    const std::string inode = fmt::format(
        "{:02x}:{:02x}:{}", gnu_dev_major(info.st_dev), gnu_dev_minor(info.st_dev), info.st_ino);
    if (kind == "FLOCK" && file == inode && pid > 0) {
      const Result<std::string> program = read_file(fmt::format("/proc/{}/comm", pid));
      return fmt::format(
          "process {}{}", pid, program.ok() ? fmt::format(" ({})", strings::trim(*program)) : "");
    }
  }
  return "";
}

/// Returns the name that the holder wrote into the file. A moment after it took the lock it may not
/// have done so.
std::string holder_of(const UniqueFd& fd, const std::string& path) {
  const Result<std::string> written = read_file(path, 1000);
  const std::string name(written.ok() ? strings::trim(*written) : local_holder(fd));
  return name.empty() ? "another process" : text::printable(name);
}

uintmax_t bytes_in(const std::string& folder) {
  uintmax_t sum = 0;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    std::error_code gone;  // renamed or removed meanwhile
    const uintmax_t size = entry->file_size(gone);
    sum += gone ? 0 : size;
  }
  return sum;
}

}  // namespace

Result<bool> try_flock(const UniqueFd& fd) {
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return false;
    }
    if (errno != EINTR) {
      return Failure::from_errno("lock", errno);
    }
  }
  return true;
}

Result<UniqueFd> lock_folder(const std::string& folder, const FolderLockOptions& options) {
  constexpr std::chrono::milliseconds kLookAgain{50};  // a lock tells nobody of its end
  const bool named = !options.file.empty();
  const std::string path = named ? (fs::path(folder) / options.file).string() : folder;
  Result<UniqueFd> fd = open_file(path, named ? O_RDWR | O_CREAT : O_RDONLY | O_DIRECTORY, 0666);
  Deadline deadline = Deadline::after(options.patience);
  uintmax_t bytes = 0;
  for (bool told = false; fd.ok(); told = true) {
    const Result<bool> ours = try_flock(*fd);
    if (!ours.ok() && options.needed) {
      return ours.failure();
    }
    if (!ours.ok() || *ours) {
      break;
    }
    if (const uintmax_t now = options.while_it_grows ? bytes_in(folder) : 0; now != bytes) {
      bytes = now;
      deadline = Deadline::after(options.patience);
    }
    if (deadline.expired()) {
      return Failure{holder_of(*fd, path), EWOULDBLOCK};
    }
    if (!told && options.on_wait) {
      options.on_wait(holder_of(*fd, path));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  if (fd.ok() && named) {  // for those who wait; that it is not written is no harm
    (void)!::ftruncate(fd->get(), 0);
    (void)write_all(fd->get(), fmt::format("process {} on {}\n", ::getpid(), host_name()));
  }
  return fd;
}

}  // namespace argosy::os
