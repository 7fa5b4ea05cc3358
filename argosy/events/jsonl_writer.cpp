#include "argosy/events/jsonl_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "argosy/base/error.h"

#include <nlohmann/json.hpp>

namespace argosy::events {

JsonlWriter::JsonlWriter(const std::string& path) : path_(path) {
  std::error_code ignored;  // open() tells what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    throw DataError("events.jsonl", "cannot open for writing: " + errno_message(errno), {path});
  }
}

JsonlWriter::~JsonlWriter() {
  close(fd_);
}

/// The first bytes of a record that did not fit on the disk would make one broken line with the
/// next.
void JsonlWriter::take_back(size_t bytes) const {
  const off_t end = lseek(fd_, 0, SEEK_END);
  if (bytes > 0 && end >= static_cast<off_t>(bytes)) {
    (void)!ftruncate(fd_, end - static_cast<off_t>(bytes));
  }
}

void JsonlWriter::write(const nlohmann::ordered_json& record) {
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(fd_, line.data() + done, line.size() - done);
    if (n < 0 && errno != EINTR) {
      const int error = errno;
      take_back(done);
      errno = error;
      throw DataError("events.jsonl", "cannot write: " + errno_message(errno), {path_});
    }
    done += n > 0 ? static_cast<size_t>(n) : 0;
  }
}

}  // namespace argosy::events
