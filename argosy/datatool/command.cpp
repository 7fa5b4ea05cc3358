#include "argosy/datatool/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string_view>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/datasets/row.h"

namespace argosy::datatool {
namespace {

struct Part {
  std::string name;
  std::string what;
  std::function<int(const std::vector<std::string>&)> run;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all{
      {"fetch", "Bring the files of a data set, once however many ask", run_fetch},
      {"verify", "Say which files are whole, missing or damaged", run_verify},
      {"info", "Samples, classes, shapes, values; a sheet of samples as PNG", run_info},
      {"pack", "Write a record file that reads back faster", run_pack},
  };
  return all;
}

std::string help() {
  std::string text =
      "Data sets: fetch, check, look at and pack them.\n\n"
      "Usage: argosy data <command> NAME|PATH [options]\n\nCommands:\n";
  for (const Part& part : parts()) {
    text += fmt::format("  {:<8} {}\n", part.name, part.what);
  }
  text += "\nNames:\n";
  for (const datasets::Row* set : datasets::rows()) {
    text += fmt::format("  {:<14} {}\n", set->name, set->title);
  }
  return text +
         "\nargosy data <command> --help for a command's options. Example:\n"
         "  argosy data fetch mnist\n";
}

}  // namespace

int run(const std::vector<std::string>& args) {
  const std::string name = args.empty() ? "" : args.front();
  if (name == "-h" || name == "--help" || name == "help") {
    fmt::print("{}", help());
    return 0;
  }
  if (name.empty()) {
    fmt::print(stderr, "{}", help());
    return 2;
  }
  const auto part = std::ranges::find(parts(), name, &Part::name);
  if (part != parts().end()) {
    return part->run({args.begin() + 1, args.end()});
  }
  std::vector<std::string> names;
  std::ranges::transform(parts(), std::back_inserter(names), &Part::name);
  const auto meant = strings::closest(name, names);
  throw UsageError("datatool.arguments",
                   fmt::format("unknown command argosy data {}.{} See: argosy data --help",
                               name,
                               meant ? fmt::format(" Did you mean argosy data {}?", *meant) : ""));
}

}  // namespace argosy::datatool
