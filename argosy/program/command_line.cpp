#include "argosy/program/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/program/help.h"

namespace argosy::program {
namespace {

/// CLI11 gathers what it does not know; of that one word is told, an option before others.
void refuse_unknown(const CLI::App& app, const char* where) {
  const std::vector<std::string> unknown = app.remaining();
  if (unknown.empty()) {
    return;
  }
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  const auto found = std::ranges::find_if(unknown, is_option);
  const std::string& word = found == unknown.end() ? unknown.front() : *found;
  if (!is_option(word)) {
    throw UsageError(where,
                     fmt::format("one word too many: {}. See: {} --help", word, app.get_name()));
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  const auto meant = strings::closest(word.substr(0, word.find('=')), names);
  throw UsageError(where,
                   fmt::format("unknown option {}.{} See: {} --help",
                               word,
                               meant ? fmt::format(" Did you mean {}?", *meant) : "",
                               app.get_name()));
}

}  // namespace

bool parse_or_help(CLI::App& app, const std::vector<std::string>& args, const char* where) {
  app.formatter(std::make_shared<Help>());
  app.allow_extras();
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // as CLI11 wants it
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return true;
  } catch (const CLI::RequiredError& error) {
    refuse_unknown(app, where);  // a slip of the pen is why something is missing
    throw UsageError(where, fmt::format("{}. See: {} --help", error.what(), app.get_name()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(where, fmt::format("{}. See: {} --help", error.what(), app.get_name()));
  }
  refuse_unknown(app, where);
  return false;
}

int run(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
  try {
    app.name(argv[0]);
    if (parse_or_help(app, {argv + 1, argv + argc}, "program.arguments")) {
      return 0;
    }
  } catch (const UsageError& error) {
    log::error("{}", error.what());
    return 2;
  }
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    log::error("{}", error.what());
    return 1;
  }
}

std::string in_a_folder(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return fmt::format("{} is a folder: expected the name of a file", path);
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() || std::filesystem::is_directory(folder, error)
             ? ""
             : fmt::format("there is no folder {}", folder.string());
}

}  // namespace argosy::program
