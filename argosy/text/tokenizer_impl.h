#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/text/tokenizer.h"

namespace argosy::text {

/// What every tokenizer knows of itself.
struct TokenizerFacts {
  std::string kind{};
  std::vector<SpecialToken> special{};  ///< ascending by id
  std::optional<int32_t> begin_of_text{};
  std::optional<int32_t> end_of_text{};
  std::optional<int32_t> pad{};
  uint64_t digest = 0;

  /// Sets the three roles that are unset to the special tokens with a usual name for them.
  void find_roles();
  [[nodiscard]] bool is_special(int32_t id) const;
};

/// What stands behind a Tokenizer. Everything is const and thread-safe.
class TokenizerImpl {
 public:
  explicit TokenizerImpl(TokenizerFacts facts) : facts_(std::move(facts)) {}
  virtual ~TokenizerImpl() = default;
  TokenizerImpl(const TokenizerImpl&) = delete;
  TokenizerImpl& operator=(const TokenizerImpl&) = delete;

  [[nodiscard]] const TokenizerFacts& facts() const { return facts_; }
  /// Appends the ids of `text`.
  virtual void encode(std::string_view text,
                      SpecialText special,
                      std::vector<int32_t>& ids) const = 0;
  /// Every id has a token.
  [[nodiscard]] virtual std::string decode(const std::vector<int32_t>& ids) const = 0;
  [[nodiscard]] virtual int64_t vocab_size() const = 0;
  [[nodiscard]] virtual std::optional<int32_t> id_of(std::string_view token) const = 0;
  /// nullopt: no token has this id.
  [[nodiscard]] virtual std::optional<std::string> token(int32_t id) const = 0;
  virtual void save(const std::string& folder) const;

 private:
  TokenizerFacts facts_;
};

}  // namespace argosy::text
