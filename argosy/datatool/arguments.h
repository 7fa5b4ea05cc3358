#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace argosy::datatool {

/// Parses the words after a command's name into what `app` describes. True: --help was asked for,
/// and printed.
/// Errors: UsageError that names the option that was probably meant, and how to get help.
[[nodiscard]] bool parse_or_help(CLI::App& app, const std::vector<std::string>& args);

}  // namespace argosy::datatool
