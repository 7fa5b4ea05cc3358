#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/verify.h"
#include "argosy/events/progress_bar.h"
#include "argosy/formats/records.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

#include "apps/data/command.h"
#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

namespace fs = std::filesystem;
using datasets::CheckedFile;
using datasets::FileState;
using datasets::Verified;

Verified look(const std::string& what, const std::string& path) {
  std::error_code error;
  if (datasets::find_row(what) == nullptr) {
    if (path.empty() && what.find('/') != std::string::npos && !fs::exists(what, error)) {
      throw DataError("datatool.verify", "No such file or folder", {what});
    }
    if (!path.empty() || !fs::exists(what, error)) {
      (void)datasets::row_of(what);  // says which name was meant
    }
    return datasets::verify_path(what);
  }
  return !path.empty() && !fs::is_directory(path, error) && fs::exists(path, error)
             ? datasets::verify_path(path)
             : datasets::verify(what, path);
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

/// A folder as a word of a shell's line.
std::string shell_word(const std::string& folder) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:@%,";
  if (folder.empty()) {
    return ".";
  }
  if (folder.find_first_not_of(kPlain) == std::string::npos) {
    return folder;
  }
  std::string word;
  for (const char c : folder) {
    word += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return "'" + word + "'";
}

void print(const Verified& verified) {
  size_t width = 0;
  for (const CheckedFile& file : verified.files) {
    width = std::max(width, file.known.name.size());
  }
  for (const CheckedFile& file : verified.files) {
    const std::string remark = file.state == FileState::kFine
                                   ? fmt::format("{} bytes", text::count(file.bytes))
                                   : file.reason;
    fmt::print("{:<8} {:<{}}  {}\n", to_string(file.state), file.known.name, width, remark);
  }
  if (verified.fine()) {
    const datasets::Row* const set = datasets::find_row(verified.set);
    const size_t all = set == nullptr ? verified.files.size() : set->files.size();
    fmt::print("{}: {}\n",
               verified.set,
               verified.files.size() < all
                   ? fmt::format("as published ({} of its {} files)", verified.files.size(), all)
                   : "all is as published");
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
             shell_word(fs::path(verified.files.front().path).parent_path().string()),
             count(FileState::kDamaged) > 0 ? " --replace" : "");
}

/// What is wrong with the records of a file, one line each; empty: nothing. Reads all of it.
std::vector<std::string> damage_of(const formats::RecordReader& reader) {
  std::vector<std::string> damage;
  for (int64_t i = 0; i < reader.size(); ++i) {
    try {
      (void)reader.record(i);
    } catch (const DataError& error) {
      damage.emplace_back(error.what());
    }
  }
  return damage;
}

/// A record file has a checksum for every byte: it needs no published MD5.
int verify_records(const std::string& path, bool json) {
  const formats::RecordReader reader(path);
  const std::vector<std::string> damage = damage_of(reader);
  if (json) {
    program::print_json({{"ok", damage.empty()},
                         {"set", "records"},
                         {"path", path},
                         {"records", reader.size()},
                         {"damaged", damage.size()},
                         {"reasons", damage}});
    return damage.empty() ? 0 : 1;
  }
  for (const std::string& reason : damage) {
    fmt::print("damaged  {}\n", reason);
  }
  fmt::print("{}: {} records, {}\n",
             path,
             text::count(reader.size()),
             damage.empty() ? "all whole" : fmt::format("{} damaged", damage.size()));
  return damage.empty() ? 0 : 1;
}

}  // namespace

int run_verify(const std::vector<std::string>& args) {
  std::string what;
  std::string path;
  bool json = false;
  if (program::parse_or_help(
          {.what = "Compare files with the lengths and MD5s that were published, or records with "
                   "their checksums.\n"
                   "Exit codes: 0 all fine, 1 something is missing or damaged, 2 wrong usage.",
           .name = "argosy data verify",
           .end = "Example: argosy data verify mnist"},
          {{"NAME|PATH",
            "",
            "A set's name, or a folder or file of one, or a record file",
            &what,
            {.required = true}},
           {"PATH", "", "Folder of a named set. Default: where fetch puts it", &path},
           program::json_option(&json)},
          args)) {
    return 0;
  }
  const std::string& place = path.empty() ? what : path;
  // A record file may be damaged where it says that it is one: its name before it is believed.
  if ((what == "records" && !path.empty()) || datasets::recognise(place) == "records") {
    return verify_records(place, json);
  }
  const Verified verified = look(what, path);
  if (json) {
    program::print_json(to_json(verified));
  } else {
    print(verified);
  }
  return verified.fine() ? 0 : 1;
}

}  // namespace argosy::datatool
