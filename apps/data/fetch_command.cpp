#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "argosy/base/text.h"
#include "argosy/datasets/fetch.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

#include "apps/data/command.h"
#include "apps/data/fetch_bar.h"
#include <nlohmann/json.hpp>

namespace argosy::datatool {
namespace {

nlohmann::ordered_json to_json(const std::string& set, const datasets::Fetched& fetched) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const datasets::FetchedFile& file : fetched.files) {
    files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"was_there", file.was_there}});
  }
  return {{"set", set}, {"folder", fetched.folder}, {"files", files}};
}

void print(const std::string& set, const datasets::Fetched& fetched) {
  int64_t bytes = 0;
  for (const datasets::FetchedFile& file : fetched.files) {
    bytes += file.bytes;
  }
  const auto there = std::ranges::count(fetched.files, true, &datasets::FetchedFile::was_there);
  const bool all = there == std::ssize(fetched.files);
  fmt::print("{}: {} in {}, {}, {}\n",
             set,
             fetched.files.size() == 1 ? "1 file" : fmt::format("{} files", fetched.files.size()),
             fetched.folder,
             text::bytes(bytes),
             all          ? "there already, and right"
             : there == 0 ? "fetched"
                          : fmt::format("{} of them there already", there));
}

}  // namespace

int run_fetch(const std::vector<std::string>& args) {
  std::string name;
  datasets::FetchOptions options;
  bool replace = false;
  bool json = false;
  if (program::parse_or_help(
          {.what = "Bring the files of a data set and check them. One of several processes that "
                   "start at "
                   "once fetches, and the others wait. A broken transfer continues where it ended.",
           .name = "argosy data fetch",
           .end = "Example: argosy data fetch mnist"},
          {{"NAME", "", "A set's name: see argosy data --help", &name, {.required = true}},
           {"--to",
            "DIR",
            "Folder. Default: $ARGOSY_DATA_HOME/NAME, else ~/.cache/argosy/data/NAME",
            &options.to},
           {"--mirror",
            "URL",
            "Fetch from URL/NAME/ instead of the published addresses (http, https, file, or a "
            "folder); "
            "may be given several times. Default: $ARGOSY_DATA_MIRROR",
            &options.mirrors},
           {"--file", "FILE", "Fetch this file only; may be given several times", &options.files},
           {"--tries", "N", "Tries for each address", &options.tries, {.least = 1, .most = 100}},
           {"--replace", "", "Replace files that are not the published ones", &replace},
           program::json_option(&json)},
          args)) {
    return 0;
  }
  options.mismatch = replace ? datasets::FileMismatch::kReplace : datasets::FileMismatch::kRefuse;
  FetchBar bar;
  options.on_bytes = [&](const datasets::FetchProgress& progress) { bar.show(progress); };
  const datasets::Fetched fetched = datasets::fetch(name, options);
  if (json) {
    program::print_json(to_json(name, fetched));
  } else {
    print(name, fetched);
  }
  return 0;
}

}  // namespace argosy::datatool
