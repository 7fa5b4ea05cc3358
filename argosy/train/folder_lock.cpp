#include "argosy/train/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/comm/json.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

/// Of rank 0, for all ranks.
class Refused final : public std::runtime_error {
 public:
  Refused(std::string of, const std::string& why)
      : std::runtime_error(why), folder(std::move(of)) {}
  std::string folder;
};

/// Without locks: as if it held it.
bool try_lock(const os::UniqueFd& fd) {
  return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// The process of this machine that holds the lock, as the kernel knows it; empty: not here.
std::string holder_of(const os::UniqueFd& fd) {
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
      std::ifstream named(fmt::format("/proc/{}/comm", pid));
      std::string program;
      std::getline(named, program);
      return fmt::format(" (process {} of this machine, {})", pid, text::printable(program));
    }
  }
  return "";
}

os::UniqueFd lock(const std::string& folder, std::chrono::milliseconds patience) {
  auto fd = os::open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) {
    throw Refused(folder, "cannot open the folder: " + errno_message(fd.failure().error_number));
  }
  const auto until = std::chrono::steady_clock::now() + patience;
  bool told = false;
  while (!try_lock(*fd)) {
    if (std::chrono::steady_clock::now() >= until) {
      throw Refused(folder,
                    fmt::format("another training runs in this folder{}. Wait for its end, or take "
                                "a folder of its own (run_dir, save_dir)",
                                holder_of(*fd)));
    }
    if (!std::exchange(told, true)) {
      log::warn("[train.fit] {}: another training is in this folder{}; waiting for its end",
                folder,
                holder_of(*fd));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a lock tells nobody of its end
  }
  return *std::move(fd);
}

std::vector<os::UniqueFd> lock_all(const std::vector<std::string>& folders,
                                   std::chrono::milliseconds patience) {
  std::set<std::filesystem::path> known;
  std::vector<os::UniqueFd> held;
  for (const std::string& folder : folders) {
    if (folder.empty()) {
      continue;
    }
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw Refused(folder, "cannot create the folder: " + errno_message(error.value()));
    }
    if (known.insert(std::filesystem::weakly_canonical(folder, error)).second) {
      held.push_back(lock(folder, patience));
    }
  }
  return held;
}

}  // namespace

FolderLock::FolderLock(const std::vector<std::string>& folders,
                       const comm::Group& group,
                       std::chrono::milliseconds patience)
    : FolderLock(group, [&] { return lock_all(folders, patience); }) {}

FolderLock::FolderLock(const comm::Group& group, const Take& take) {
  std::exception_ptr unexpected;
  nlohmann::json refused = nlohmann::json::object();
  if (group.rank() == 0) {
    try {
      held_ = take();
    } catch (const Refused& why) {
      refused = {{"folder", why.folder}, {"why", why.what()}};
    } catch (const std::exception& error) {  // whatever it is, the others must not wait for it
      unexpected = std::current_exception();
      refused = {{"folder", ""},
                 {"why", fmt::format("rank 0 could not hold the run's folders: {}", error.what())}};
    }
  }
  if (group.size() > 1) {
    refused = comm::broadcast_object(refused, group);
  }
  if (unexpected) {
    std::rethrow_exception(unexpected);
  }
  if (refused.contains("why")) {
    throw DataError("train.fit",
                    refused["why"].get<std::string>(),
                    {.path = refused["folder"].get<std::string>()});
  }
}

}  // namespace argosy::train::detail
