#include "argosy/train/callbacks/earlier_lines.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "argosy/base/error.h"

namespace argosy::train::detail {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::error_code& error) {
  throw DataError(
      "train.log",
      "cannot take out what came after the step that training goes on from: " + error.message(),
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
  const std::string kept = path + ".tmp";
  bool all = true;
  {
    std::ifstream in(path, std::ios::binary);
    std::ofstream out(kept, std::ios::binary | std::ios::trunc);
    std::string line;
    while (std::getline(in, line)) {
      const bool whole = !in.eof();  // it has its end
      const std::optional<int64_t> of_line = whole ? step_of(line) : std::nullopt;
      if (whole && of_line.value_or(0) <= step) {
        out << line << '\n';
      } else {
        all = false;
      }
    }
    out.flush();
    if (!out.good() || in.bad()) {
      fail(path, std::make_error_code(std::errc::io_error));
    }
  }
  if (all) {
    fs::remove(kept, none);
  } else {
    rename(kept, path);
  }
}

}  // namespace argosy::train::detail
