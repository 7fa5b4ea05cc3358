#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::apps {

/// Becomes another program of ours, which lies beside this one.
/// Errors: Error that says how to get it.
[[noreturn]] inline void become(const std::string& program, const std::vector<std::string>& args) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> words = args;
  words.insert(words.begin(), (own.parent_path() / program).string());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(argv[0], argv.data());
  throw Error("argosy",
              fmt::format("cannot start {}: {}. make build, or make install, brings it",
                          words[0],
                          errno_message(errno)));
}

}  // namespace argosy::apps
