#include "argosy/train/callbacks/earlier_lines.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "argosy/base/error.h"
#include "argosy/os/whole_file.h"

namespace argosy::train::detail {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::error_code& error) {
  throw DataError("train.log",
                  "cannot take out what came after the step from which the training resumes: " +
                      error.message(),
                  {path});
}

void rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) {
    fail(from, error);
  }
}

}  // namespace

void keep_lines_until(const std::string& path,
                      int64_t step,
                      const std::function<std::optional<int64_t>(const std::string&)>& step_of) {
  std::error_code none;
  if (!fs::is_regular_file(path, none)) {
    return;
  }
  if (step == 0) {
    rename(path, path + ".old");
    return;
  }
  Result<os::WholeFile> kept = os::WholeFile::create(path);
  bool all = true;
  std::ifstream in(path, std::ios::binary);
  std::string line;
  while (kept.ok() && std::getline(in, line)) {
    const bool whole = !in.eof();  // it has its end
    const std::optional<int64_t> of_line = whole ? step_of(line) : std::nullopt;
    if (whole && of_line.value_or(0) <= step) {
      kept->write(line + '\n');
    } else {
      all = false;
    }
  }
  if (in.bad()) {
    fail(path, std::make_error_code(std::errc::io_error));
  }
  const Status done = !kept.ok() ? kept.failure() : all ? kept->status() : kept->commit();
  if (!done.ok()) {
    fail(path, {done.failure().error_number, std::generic_category()});
  }
}

}  // namespace argosy::train::detail
