#include "argosy/runs/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>

#include "argosy/base/error.h"
#include "argosy/os/fd.h"
#include "argosy/os/whole_file.h"

namespace argosy::runs {
void make_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw DataError(
        "runs.write", "cannot make the folder: " + errno_message(error.value()), {folder});
  }
}

void replace_file(const std::string& path, std::string_view text) {
  os::write_whole(path, text, {.disk = os::WholeFileOptions::Disk::kNot})
      .or_throw<DataError>("runs.write", DataPlace{path});
}

int64_t file_size(const std::string& path) {
  struct stat status {};
  const bool regular = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return regular ? int64_t{status.st_size} : -1;
}

std::string read_piece(const std::string& path, int64_t offset, size_t most) {
  const int64_t size = file_size(path);
  if (size <= offset) {
    return {};
  }
  auto fd = os::open_file(path, O_RDONLY);
  if (!fd.ok()) {
    return {};
  }
  std::string text(std::min<size_t>(most, static_cast<size_t>(size - offset)), '\0');
  const Result<size_t> got =
      os::read_at(fd->get(), std::as_writable_bytes(std::span(text)), offset);
  text.resize(got.ok() ? *got : 0);
  return text;
}

std::optional<std::string> read_small_file(const std::string& path, size_t most) {
  const int64_t size = file_size(path);
  if (size < 0 || size > static_cast<int64_t>(most)) {
    return std::nullopt;
  }
  return read_piece(path, 0, most);
}

}  // namespace argosy::runs
