#pragma once

#include <string>
#include <vector>

#include "argosy/program/command_line.h"

namespace argosy::apps {

inline bool parse_or_help(CLI::App& app,
                          const std::vector<std::string>& args,
                          const char* where = "checkpoint.arguments") {
  return program::parse_or_help(app, args, where);
}

}  // namespace argosy::apps
