#include "argosy/launch/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace argosy::launch {

LogFile::LogFile(std::string path, Start start) : path_(std::move(path)) {
  if (start == Start::kEmpty) {
    std::error_code no_such_file_mostly;
    std::filesystem::remove(path_, no_such_file_mostly);
  }
}

Status LogFile::open() {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return Failure::from_errno(fmt::format("make the folder {}", folder.string()), error.value());
  }
  Result<os::UniqueFd> opened = os::open_file(path_, O_WRONLY | O_CREAT | O_APPEND);
  if (!opened.ok()) {
    return std::move(opened).failure();
  }
  file_ = *std::move(opened);
  return {};
}

std::string LogFile::write(std::string_view bytes) {
  if (over_ || bytes.empty()) {
    return "";
  }
  Status status = file_ ? Status() : open();
  if (status.ok()) {
    status = os::write_all(file_.get(), bytes);
  }
  if (status.ok()) {
    return "";
  }
  over_ = true;
  const char* what = file_ ? "ends here" : "is not written";
  file_.close();
  return fmt::format("[launch] {} {}: {}\n", path_, what, status.failure().what);
}

}  // namespace argosy::launch
