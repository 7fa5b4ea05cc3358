#include "argosy/datasets/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/os/addresses.h"

namespace argosy::datasets {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr const char* kName = ".fetch.lock";

/// Is the lock ours? False: another has it.
bool try_lock(int fd, const std::string& path) {
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) {
      return false;
    }
    if (errno != EINTR) {
      throw DataError(
          "datasets.lock",
          "cannot lock: " + errno_message(errno) +
              ". Fetch into a folder of another file system (--to), or before the job, once",
          {path});
    }
  }
  return true;
}

/// Bytes in the folder: while they grow, whoever fetches gets on.
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

/// Who holds the lock, as it wrote itself; a moment after it took the lock it may not have done so.
std::string holder(const std::string& path) {
  const Result<std::string> text = os::read_file(path, 1000);
  const std::string name = text.ok() ? std::string(strings::trim(*text)) : "";
  return name.empty() ? "another process" : name;
}

void wait_for(int fd, const std::string& folder, const std::string& path, auto patience) {
  constexpr auto kLookAgain = 50ms;
  fmt::print(
      stderr, "[{}] {} is fetching into {}: waiting\n", "datasets.lock", holder(path), folder);
  uintmax_t bytes = bytes_in(folder);
  Deadline deadline = Deadline::after(patience);
  while (!try_lock(fd, path)) {
    if (const uintmax_t now = bytes_in(folder); now != bytes) {
      bytes = now;
      deadline = Deadline::after(patience);
    }
    if (deadline.expired()) {
      throw DataError("datasets.lock",
                      fmt::format("{} holds the lock, and nothing has come for {:.0f} s. Look what "
                                  "it does, or end it; what has come is kept",
                                  holder(path),
                                  std::chrono::duration<double>(patience).count()),
                      {folder});
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, std::chrono::milliseconds patience) {
  const std::string path = (fs::path(folder) / kName).string();
  Result<os::UniqueFd> fd = os::open_file(path, O_RDWR | O_CREAT, 0666);
  if (!fd.ok()) {
    throw DataError("datasets.lock",
                    "cannot write into the folder: " + errno_message(fd.failure().error_number) +
                        ". Give another with --to or ARGOSY_DATA_HOME",
                    {folder});
  }
  fd_ = *std::move(fd);
  if (!try_lock(fd_.get(), path)) {
    wait_for(fd_.get(), folder, path, patience);
  }
  // For those who wait. That it is not written is no harm.
  (void)!::ftruncate(fd_.get(), 0);
  (void)os::write_all(fd_.get(), fmt::format("process {} on {}\n", ::getpid(), os::host_name()));
}

}  // namespace argosy::datasets
