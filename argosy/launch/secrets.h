#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argosy::launch {

/// Does a variable or an option of that name hold what is not to be shown? API_KEY, --auth-token,
/// DB_PASSWORD; not MONKEY.
[[nodiscard]] bool is_secret(std::string_view name);

/// "WANDB_API_KEY=(hidden)" for "WANDB_API_KEY=abc".
[[nodiscard]] std::string hide_secret(const std::string& assignment);

/// A command line as it may be shown: --token=abc and --token abc without the value.
[[nodiscard]] std::vector<std::string> hide_secrets(std::vector<std::string> words);

}  // namespace argosy::launch
