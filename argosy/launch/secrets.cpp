#include "argosy/launch/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "argosy/base/strings.h"

namespace argosy::launch {
namespace {

constexpr std::string_view kSecretsHidden = "(hidden)";
/// Words that make a name a secret's, as "_" and "-" divide it; and those before "token" and "key",
/// which are harmless words otherwise (--pad_token, --text_key).
constexpr auto kSecretWords = std::to_array<std::string_view>({"secret",
                                                               "password",
                                                               "passwd",
                                                               "pgpassword",
                                                               "passphrase",
                                                               "credential",
                                                               "credentials",
                                                               "apikey"});
constexpr auto kBefore = std::to_array<std::string_view>({"access",
                                                          "api",
                                                          "argosy",
                                                          "auth",
                                                          "bearer",
                                                          "encryption",
                                                          "github",
                                                          "hf",
                                                          "hub",
                                                          "job",
                                                          "private",
                                                          "secret",
                                                          "session",
                                                          "wandb"});

/// GITLAB_TOKEN, VAULT_KEY: of a variable these words say enough; few of its kind are harmless.
bool is_secret_variable(std::string_view name) {
  constexpr auto kHarmless = std::to_array<std::string_view>({"ARGOSY_TLS_KEY",
                                                              "PAD_TOKEN",
                                                              "EOS_TOKEN",
                                                              "BOS_TOKEN",
                                                              "UNK_TOKEN",
                                                              "MASK_TOKEN",
                                                              "SORT_KEY",
                                                              "PRIMARY_KEY"});
  const bool upper = std::ranges::none_of(
      name, [](char c) { return c == '-' || (std::islower(static_cast<unsigned char>(c)) != 0); });
  return upper && (name.ends_with("_TOKEN") || name.ends_with("_KEY")) &&
         std::ranges::count(kHarmless, name) == 0;
}

/// "--auth-token" → auth, token
std::vector<std::string> words_of(std::string_view name) {
  std::string plain = strings::to_lower(std::string(name));
  std::ranges::replace(plain, '-', '_');
  return strings::split(plain, '_');
}

}  // namespace

bool is_secret(std::string_view name) {
  if (is_secret_variable(name)) {
    return true;
  }
  std::vector<std::string> words = words_of(name);
  std::erase(words, "");
  if (words.empty() || words.back() == "file" || words.front() == "use") {
    return false;  // names a file; switches something on
  }
  const auto in = [](const auto& list, const std::string& word) {
    return std::ranges::count(list, word) > 0;
  };
  const bool named =
      std::ranges::any_of(words, [&](const std::string& w) { return in(kSecretWords, w); });
  const bool token = words.back() == "token" || words.back() == "key";
  const bool of_something = words.size() > 1 && in(kBefore, words[words.size() - 2]);
  return named || (token && of_something) || (words.size() == 1 && words.back() == "token");
}

std::string hide_secret(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  return equals != std::string::npos && is_secret(assignment.substr(0, equals))
             ? assignment.substr(0, equals + 1) + std::string(kSecretsHidden)
             : assignment;
}

std::vector<std::string> hide_secrets(std::vector<std::string> words) {
  bool next = false;
  for (std::string& word : words) {
    if (next && !word.starts_with('-')) {
      word = kSecretsHidden;
      next = false;
      continue;
    }
    constexpr std::string_view kEnv = "--env";  // its value is an assignment
    if (word.starts_with(std::string(kEnv) + "=")) {
      word = word.substr(0, kEnv.size() + 1) + hide_secret(word.substr(kEnv.size() + 1));
    } else {
      word = hide_secret(word);
    }
    next = word.starts_with('-') && word.find('=') == std::string::npos && is_secret(word);
  }
  return words;
}

}  // namespace argosy::launch
