#include "argosy/runs/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/program/command_line.h"
#include "argosy/runs/commands.h"

namespace argosy::runs {
namespace {

struct Part {
  std::string name;
  std::string what;
  std::function<int(const std::vector<std::string>&)> run;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all{
      {"ls", "List the runs: when, how they ended, their last loss and metric", run_ls},
      {"show", "Show one: configuration, figures, curves, ranks", run_show},
      {"compare", "Say how two differ, in configuration and results; overlay curves", run_compare},
  };
  return all;
}

std::string help() {
  std::string text =
      "Runs: what was trained, with which options, and what came of it.\n\n"
      "Usage: argosy runs <command> [options]\n\nCommands:\n";
  for (const Part& part : parts()) {
    text += fmt::format("  {:<8} {}\n", part.name, part.what);
  }
  return text +
         "\nRuns lie in runs/ of the folder that they were started in; --dir names another.\n"
         "A run's page for a browser is its index.html. A command's options:\n"
         "argosy runs <command> --help.\n"
         "Example:\n  argosy runs ls\n";
}

}  // namespace

bool parse_or_help(CLI::App& app, const std::vector<std::string>& args) {
  return program::parse_or_help(app, args, "runs.arguments");
}

int run_command(const std::vector<std::string>& args) {
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
  throw UsageError("runs.arguments",
                   fmt::format("unknown command argosy runs {}.{} See: argosy runs --help",
                               name,
                               meant ? fmt::format(" Did you mean argosy runs {}?", *meant) : ""));
}

}  // namespace argosy::runs
