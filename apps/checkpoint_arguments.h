#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include <CLI/CLI.hpp>

namespace argosy::apps {

/// Parses the words after a command's name into what `app` describes. True: --help was asked for,
/// and printed.
/// Errors: UsageError that names the option that was probably meant, and how to get help.
inline bool parse_or_help(CLI::App& app, const std::vector<std::string>& args) {
  constexpr const char* kWhere = "checkpoint.arguments";
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
  const std::vector<std::string> extras = app.remaining();
  if (extras.empty()) {
    return false;
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  const std::string& word = extras.front();
  const auto meant = strings::closest(word.substr(0, word.find('=')), names);
  throw UsageError(
      kWhere,
      fmt::format("{} {}.{} See: {} --help",
                  word.starts_with('-') ? "unknown option" : "one word too many:",
                  word,
                  word.starts_with('-') && meant ? fmt::format(" Did you mean {}?", *meant) : "",
                  app.get_name()));
}

}  // namespace argosy::apps
