#include "argosy/train/folder_lock.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/comm/json.h"
#include "argosy/os/folder_lock.h"

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

os::UniqueFd lock(const std::string& folder, std::chrono::milliseconds patience) {
  Result<os::UniqueFd> fd = os::lock_folder(
      folder, {.patience = patience, .needed = false, .on_wait = [&](const std::string& holder) {
                 log::warn(
                     "[train.fit] {}: another training is in this folder: {}; waiting for its end",
                     folder,
                     holder);
               }});
  if (fd.ok()) {
    return *std::move(fd);
  }
  const Failure& failure = fd.failure();
  throw Refused(
      folder,
      failure.error_number == EWOULDBLOCK
          ? fmt::format("another training runs in this folder: {}. Wait for its end, or take "
                        "a folder of its own (run_dir, save_dir)",
                        failure.what)
          : "cannot open the folder: " + failure.what);
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
