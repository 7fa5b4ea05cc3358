#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace argosy::datatool {

/// Parses the words after a command's name into what `app` describes. True: --help was asked for,
/// and printed.
/// Errors: UsageError that names the option that was probably meant, and how to get help.
[[nodiscard]] bool parse_or_help(CLI::App& app, const std::vector<std::string>& args);

/// A command's output may take the place of an earlier one, never of a file of another kind: a
/// forgotten word must not cost a data set. `magic`: what files of `kind` ("a record file") begin
/// with. Errors: UsageError when `path` is a file with another beginning, or a folder.
void check_output(const char* where,
                  const std::string& path,
                  std::string_view magic,
                  const std::string& kind);

}  // namespace argosy::datatool
