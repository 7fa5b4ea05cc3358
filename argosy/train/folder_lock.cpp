#include "argosy/train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/comm/json.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

constexpr const char* kFolderWhere = "train.fit";
constexpr auto kPatience = std::chrono::seconds(5);

/// Of rank 0, for all ranks.
class Refused final : public std::runtime_error {
 public:
  Refused(std::string of, const std::string& why)
      : std::runtime_error(why), folder(std::move(of)) {}
  std::string folder;
};

os::UniqueFd lock(const std::string& folder) {
  auto fd = os::open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) {
    throw Refused(folder, "cannot open the folder: " + errno_message(fd.failure().error_number));
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return {};
    }
    if (std::chrono::steady_clock::now() > until) {
      throw Refused(
          folder,
          "another training runs in this folder. Wait for its end, or take a folder of its own "
          "(run_dir, save_dir)");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a lock tells nobody of its end
  }
  return *std::move(fd);
}

std::vector<os::UniqueFd> lock_all(const std::vector<std::string>& folders) {
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
      held.push_back(lock(folder));
    }
  }
  return held;
}

}  // namespace

FolderLock::FolderLock(const std::vector<std::string>& folders, const comm::Group& group) {
  nlohmann::json refused = nlohmann::json::object();
  if (group.rank() == 0) {
    try {
      held_ = lock_all(folders);
    } catch (const Refused& why) {
      refused = {{"folder", why.folder}, {"why", why.what()}};
    }
  }
  if (group.size() > 1) {
    refused = comm::broadcast_object(refused, group);
  }
  if (refused.contains("why")) {
    throw DataError(kFolderWhere,
                    refused["why"].get<std::string>(),
                    {.path = refused["folder"].get<std::string>()});
  }
}

}  // namespace argosy::train::detail
