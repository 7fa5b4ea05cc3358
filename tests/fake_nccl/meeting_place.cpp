#include "tests/fake_nccl/meeting_place.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

namespace fake_nccl {
namespace {

namespace fs = std::filesystem;

bool look_until(const std::function<bool()>& found, const MeetingPlace::Ends& ends) {
  auto pause = std::chrono::microseconds(10);
  while (!found()) {
    if (ends()) {
      return false;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(500));
  }
  return true;
}

constexpr const char* kFolders = "/dev/shm";
constexpr std::string_view kPrefix = "argosy-fake-nccl-";

/// Ranks that were killed leave their folders: named by a process that is gone.
void clear_what_the_dead_left() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(kFolders, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrefix)) {
      const int owner = std::atoi(name.c_str() + kPrefix.size());
      if (owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) {
        fs::remove_all(entry.path(), ignored);
      }
    }
  }
}

}  // namespace

MeetingPlace::MeetingPlace(const std::string& id)
    : folder_(std::string(kFolders) + "/" + std::string(kPrefix) + id) {
  static std::once_flag once;
  std::call_once(once, clear_what_the_dead_left);
  fs::create_directories(folder_);
}

void MeetingPlace::put(const std::string& name, const Bytes& bytes) const {
  const std::string path = folder_ + "/" + name;
  const std::string hidden = folder_ + "/." + name;
  {
    std::ofstream file(hidden, std::ios::binary);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): iostreams want char
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::error_code gone;  // the folder is, where another rank has cleared it
  fs::rename(hidden, path, gone);
}

bool MeetingPlace::get(const std::string& name, Bytes& bytes, const Ends& ends) const {
  const std::string path = folder_ + "/" + name;
  if (!look_until([&] { return fs::exists(path); }, ends)) {
    return false;
  }
  std::error_code gone;  // the last rank to leave may have cleared the place since
  const uintmax_t size = fs::file_size(path, gone);
  if (gone) {
    return false;
  }
  bytes.resize(size);
  std::ifstream file(path, std::ios::binary);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): iostreams want char
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return true;
}

void MeetingPlace::remove(const std::string& name) const {
  std::error_code ignored;
  fs::remove(folder_ + "/" + name, ignored);
}

bool MeetingPlace::wait_until_gone(const std::string& name, const Ends& ends) const {
  const std::string path = folder_ + "/" + name;
  return look_until([&] { return !fs::exists(path); }, ends);
}

void MeetingPlace::clear() const {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace fake_nccl
