#include "argosy/base/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "argosy/base/strings.h"

namespace argosy::secrets {
namespace {

constexpr std::string_view kHidden = "(hidden)";
constexpr std::string_view kBlanks = " \t\n";

template <size_t N>
bool in(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::ranges::count(list, word) > 0;
}

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
  return upper && (name.ends_with("_TOKEN") || name.ends_with("_KEY")) && !in(kHarmless, name);
}

/// "--auth-token" → auth, token
std::vector<std::string> words_of(std::string_view name) {
  std::string plain = strings::to_lower(name);
  std::ranges::replace(plain, '-', '_');
  std::vector<std::string> words = strings::split(plain, '_');
  std::erase(words, "");
  return words;
}

/// "https://(hidden)@host" for each URL in `text` that names a user or a password; a user may be a
/// token ("https://ghp_x@github.com").
std::string without_users(std::string text) {
  constexpr std::string_view kScheme = "://";
  for (size_t at = text.find(kScheme); at != std::string::npos; at = text.find(kScheme, at)) {
    at += kScheme.size();
    const size_t end = std::min(text.find_first_of("/?# \t\n", at), text.size());
    const size_t user = std::string_view(text).substr(at, end - at).rfind('@');
    if (user != std::string::npos) {
      text.replace(at, user, kHidden);
    }
  }
  return text;
}

/// NAME=value, and what a value may hold in turn: --env=NAME=value, https://host/?token=value.
std::string without_values(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) {
    return text;
  }
  const std::string front = text.substr(0, equals + 1);
  return front + (is_secret(front.substr(0, equals)) ? std::string(kHidden)
                                                     : without_values(text.substr(equals + 1)));
}

/// NAME=value or --env=NAME=value whose value may have blanks.
bool is_of_one_secret(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view front = text.substr(0, equals);
  return equals != std::string_view::npos &&
         front.find_first_of(kBlanks) == std::string_view::npos &&
         (is_secret(front) || is_of_one_secret(text.substr(equals + 1)));
}

}  // namespace

bool is_secret(std::string_view name) {
  /// Words that make a name a secret's, as "_" and "-" divide it.
  constexpr auto kAlone = std::to_array<std::string_view>({"secret",
                                                           "password",
                                                           "passwd",
                                                           "pgpassword",
                                                           "passphrase",
                                                           "credential",
                                                           "credentials",
                                                           "apikey",
                                                           "jwt"});
  /// Those before "token" and "key", which are harmless words otherwise (--pad_token, --text_key).
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
                                                            "security",
                                                            "session",
                                                            "wandb"});
  name.remove_prefix(name.find_last_of(".:+/?&") + 1);  // --logger.token, https://host/?a&token
  const std::vector<std::string> words = words_of(name);
  if (words.empty() || words.back() == "file" || words.front() == "use") {
    return false;  // names a file; switches something on
  }
  const bool token = words.back() == "token" || words.back() == "key";
  return is_secret_variable(name) ||
         std::ranges::any_of(words, [&](const std::string& word) { return in(kAlone, word); }) ||
         (token && words.size() > 1 && in(kBefore, words[words.size() - 2])) ||
         (words.size() == 1 && words.back() == "token");
}

std::string hidden(std::string_view word) {
  std::string text = without_users(std::string(word));
  if (text.find_first_of(kBlanks) == std::string::npos || is_of_one_secret(text)) {
    return without_values(text);
  }
  // A command line in one word, as sh -c takes it: its blanks stay as they are.
  std::vector<std::string> words{""};
  std::string blanks;
  for (const char c : text) {
    if (kBlanks.find(c) == std::string_view::npos) {
      words.back() += c;
    } else {
      blanks += c;
      words.emplace_back();
    }
  }
  words = hidden(std::move(words));
  text = words[0];
  for (size_t i = 0; i < blanks.size(); ++i) {
    text += blanks[i] + words[i + 1];
  }
  return text;
}

std::vector<std::string> hidden(std::vector<std::string> words) {
  bool next = false;
  for (std::string& word : words) {
    if (word.empty()) {
      continue;
    }
    const bool value = next && !word.starts_with("--");
    next =
        !value && word.starts_with('-') && word.find('=') == std::string::npos && is_secret(word);
    word = value ? std::string(kHidden) : hidden(std::string_view(word));
  }
  return words;
}

}  // namespace argosy::secrets
