#include "argosy/datatool/arguments.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::datatool {
namespace {

constexpr const char* kWhere = "datatool.arguments";

/// CLI11 gathers what it does not know; of that the first word is told.
[[noreturn]] void refuse(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  const auto meant = strings::closest(word.substr(0, word.find('=')), names);
  throw UsageError(
      kWhere,
      fmt::format("{} {}.{} See: {} --help",
                  word.starts_with('-') ? "unknown option" : "one word too many:",
                  word,
                  word.starts_with('-') && meant ? fmt::format(" Did you mean {}?", *meant) : "",
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
    refuse(app, extras.front());
  }
  return false;
}

void check_output(const char* where,
                  const std::string& path,
                  std::string_view magic,
                  const std::string& kind) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw UsageError(where,
                     fmt::format("{} is a folder: expected the name of {}, to write", path, kind));
  }
  std::ifstream file(path, std::ios::binary);
  std::string begin(magic.size(), '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  if (!begin.empty() && begin != magic) {
    throw UsageError(where,
                     fmt::format("{} is there and is not {}: nothing else is overwritten. Choose "
                                 "another name, or remove it first.",
                                 path,
                                 kind));
  }
}

}  // namespace argosy::datatool
