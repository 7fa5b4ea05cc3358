#include "argosy/launch/secrets.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "argosy/base/strings.h"

namespace argosy::launch {
namespace {

constexpr std::string_view kHidden = "(hidden)";
/// Words of names, as "_" and "-" divide them.
constexpr auto kWords = std::to_array<std::string_view>(
    {"token", "secret", "password", "passwd", "passphrase", "credential", "credentials", "apikey"});

/// "--auth-token" → auth, token
std::vector<std::string> words_of(std::string_view name) {
  std::string plain = strings::to_lower(std::string(name));
  std::ranges::replace(plain, '-', '_');
  return strings::split(plain, '_');
}

}  // namespace

bool is_secret(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  const bool named = std::ranges::any_of(
      words, [](const std::string& word) { return std::ranges::count(kWords, word) > 0; });
  // A key of an interface; ARGOSY_TLS_KEY and --tls_key name a file, as ARGOSY_TOKEN_FILE does.
  const bool key = words.size() > 1 && words.back() == "key" && words[words.size() - 2] != "tls";
  return (named && words.back() != "file") || key;
}

std::string hide_secret(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  return equals != std::string::npos && is_secret(assignment.substr(0, equals))
             ? assignment.substr(0, equals + 1) + std::string(kHidden)
             : assignment;
}

std::vector<std::string> hide_secrets(std::vector<std::string> words) {
  bool next = false;
  for (std::string& word : words) {
    if (next && !word.starts_with('-')) {
      word = kHidden;
      next = false;
      continue;
    }
    word = hide_secret(word);
    next = word.starts_with('-') && word.find('=') == std::string::npos && is_secret(word);
  }
  return words;
}

}  // namespace argosy::launch
