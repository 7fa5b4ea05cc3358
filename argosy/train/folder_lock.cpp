#include "argosy/train/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "argosy/base/error.h"
#include "argosy/comm/json.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

constexpr const char* kFolderWhere = "train.fit";

struct Attempt {
  os::UniqueFd held{};
  std::string refused{};  // empty: not
  bool is_taken = false;
};

Attempt attempt(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return {.refused = "cannot create the folder: " + errno_message(error.value())};
  }
  auto fd = os::open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!fd.ok()) {
    return {.refused = "cannot open the folder: " + errno_message(fd.failure().error_number)};
  }
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) == 0) {
    return {.held = *std::move(fd)};
  }
  if (errno == EWOULDBLOCK) {
    return {.refused =
                "another training runs in this folder. Wait for its end, or take a folder of "
                "its own (run_dir, save_dir)",
            .is_taken = true};
  }
  return {};
}

}  // namespace

FolderLock::FolderLock(const std::string& folder, const comm::Group& group) {
  if (folder.empty()) {
    return;
  }
  nlohmann::json refused;
  if (group.rank() == 0) {
    Attempt made = attempt(folder);
    refused = {{"why", made.refused}, {"is_taken", made.is_taken}};
    held_ = std::move(made.held);
  }
  if (group.size() > 1) {
    refused = comm::broadcast_object(refused, group);
  }
  const auto why = refused["why"].get<std::string>();
  if (why.empty()) {
    return;
  }
  if (refused["is_taken"].get<bool>()) {
    throw UsageError(kFolderWhere, folder + ": " + why);
  }
  throw DataError(kFolderWhere, why, {.path = folder});
}

}  // namespace argosy::train::detail
