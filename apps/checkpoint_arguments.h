#pragma once

#include <string>
#include <vector>

#include "argosy/program/command_line.h"

namespace argosy::apps {

/// As program::parse_or_help().
inline bool parse_or_help(CLI::App& app, const std::vector<std::string>& args) {
  return program::parse_or_help(app, args, "checkpoint.arguments");
}

}  // namespace argosy::apps
