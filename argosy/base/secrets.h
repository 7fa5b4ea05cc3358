#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The one list of what must not be shown or kept. Reports, tables, records of runs and messages
/// use it.
namespace argosy::secrets {

/// True if a variable or an option of that name holds a secret: API_KEY, --auth-token, SLURM_JWT,
/// --logger.token; not MONKEY, --pad_token or ARGOSY_TOKEN_FILE.
[[nodiscard]] bool is_secret(std::string_view name);

/// Returns `word` without the secrets that it spells out: "WANDB_API_KEY=(hidden)",
/// "--token=(hidden)", "--env=HF_TOKEN=(hidden)", and "https://(hidden)@host/path" for a URL with a
/// user or a password.
[[nodiscard]] std::string hidden(std::string_view word);

/// Returns a command line as it may be shown. It also hides the word after an option like
/// "--token", also inside of one word, as in {"sh", "-c", "./train --token X"}.
[[nodiscard]] std::vector<std::string> hidden(std::vector<std::string> words);

}  // namespace argosy::secrets
