#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/datatool/arguments.h"
#include "argosy/datatool/command.h"
#include "argosy/download/verify.h"
#include "argosy/events/progress_bar.h"

#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

namespace fs = std::filesystem;
using download::CheckedFile;
using download::FileState;
using download::Verified;

Verified look(const std::string& what, const std::string& path) {
  if (download::find_known_set(what) == nullptr) {
    if (!path.empty() || !fs::exists(what)) {
      (void)download::known_set(what);  // says which name was meant
    }
    return download::verify_path(what);
  }
  return !path.empty() && !fs::is_directory(path) && fs::exists(path)
             ? download::verify_path(path)
             : download::verify(what, path);
}

nlohmann::ordered_json to_json(const Verified& verified) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const CheckedFile& file : verified.files) {
    files.push_back({{"path", file.path},
                     {"state", to_string(file.state)},
                     {"bytes", file.bytes},
                     {"md5", file.md5},
                     {"expected_bytes", file.known.published.bytes},
                     {"expected_md5", file.known.published.md5},
                     {"reason", file.reason}});
  }
  return {{"ok", verified.fine()}, {"set", verified.set}, {"files", files}};
}

void print(const Verified& verified) {
  size_t width = 0;
  for (const CheckedFile& file : verified.files) {
    width = std::max(width, file.known.name.size());
  }
  for (const CheckedFile& file : verified.files) {
    const std::string remark = file.state == FileState::kFine
                                   ? fmt::format("{} bytes", events::with_commas(file.bytes))
                                   : file.reason;
    fmt::print("{:<8} {:<{}}  {}\n", to_string(file.state), file.known.name, width, remark);
  }
  if (verified.fine()) {
    fmt::print("{}: all is as published\n", verified.set);
    return;
  }
  const auto count = [&](FileState state) {
    return std::ranges::count(verified.files, state, &CheckedFile::state);
  };
  fmt::print("{}: {} fine, {} missing, {} damaged. To bring them: argosy data fetch {} --to {}{}\n",
             verified.set,
             count(FileState::kFine),
             count(FileState::kMissing),
             count(FileState::kDamaged),
             verified.set,
             fs::path(verified.files.front().path).parent_path().string(),
             count(FileState::kDamaged) > 0 ? " --replace" : "");
}

}  // namespace

int run_verify(const std::vector<std::string>& args) {
  CLI::App app(
      "Compare files with the lengths and MD5s that were published.\n"
      "Exit codes: 0 all fine, 1 something is missing or damaged, 2 wrong usage.\n");
  app.name("argosy data verify");
  app.footer("\nExample: argosy data verify mnist");
  std::string what;
  std::string path;
  bool json = false;
  app.add_option("NAME|PATH", what, "A set's name, or a folder or file of one")->required();
  app.add_option("PATH", path, "Where a named set lies. Default: where fetch brings it");
  app.add_flag("--json", json, "For programs");
  if (parse_or_help(app, args)) {
    return 0;
  }
  const Verified verified = look(what, path);
  if (json) {
    fmt::print("{}\n", to_json(verified).dump(2));
  } else {
    print(verified);
  }
  return verified.fine() ? 0 : 1;
}

}  // namespace argosy::datatool
