#include "argosy/runs/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/runs/commands.h"

namespace argosy::runs {
namespace {

constexpr const char* kWhere = "runs.arguments";

struct Part {
  std::string name;
  std::string what;
  std::function<int(const std::vector<std::string>&)> run;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all{
      {"ls", "List the runs: when, how they ended, their last loss and metric", run_ls},
      {"show", "Show one: configuration, figures, curves, ranks", run_show},
      {"compare",
       "Say how two differ, in configuration and results; overlay their curves",
       run_compare},
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
         "\nRuns lie in runs/ of the folder that they were started in; --dir names another. A "
         "run's page\n"
         "for a browser is its index.html. argosy runs <command> --help for a command's options.\n"
         "Example:\n  argosy runs ls\n";
}

/// CLI11 gathers what it does not know; of that one word is told.
[[noreturn]] void refuse(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  const bool option = word.starts_with('-');
  const auto meant = strings::closest(word.substr(0, word.find('=')), names);
  throw UsageError(kWhere,
                   fmt::format("{} {}.{} See: {} --help",
                               option ? "unknown option" : "one word too many:",
                               word,
                               option && meant ? fmt::format(" Did you mean {}?", *meant) : "",
                               app.get_name()));
}

}  // namespace

bool parse_or_help(CLI::App& app, const std::vector<std::string>& args) {
  app.allow_extras();
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // as CLI11 wants it
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return true;
  } catch (const CLI::ParseError& error) {
    throw UsageError(kWhere, fmt::format("{}. See: {} --help", error.what(), app.get_name()));
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty()) {
    const auto option =
        std::ranges::find_if(extras, [](const std::string& word) { return word.starts_with('-'); });
    refuse(app, option == extras.end() ? extras.front() : *option);
  }
  return false;
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
  throw UsageError(kWhere,
                   fmt::format("unknown command argosy runs {}.{} See: argosy runs --help",
                               name,
                               meant ? fmt::format(" Did you mean argosy runs {}?", *meant) : ""));
}

}  // namespace argosy::runs
