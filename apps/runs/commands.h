#pragma once

#include <string>
#include <vector>

namespace argosy::runs {

// One function for each word after `argosy runs`. Each returns the exit code.
[[nodiscard]] int run_ls(const std::vector<std::string>& args);
[[nodiscard]] int run_show(const std::vector<std::string>& args);
[[nodiscard]] int run_compare(const std::vector<std::string>& args);

}  // namespace argosy::runs
