#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/text/tokenizer_impl.h"

namespace argosy::text {

/// The 256 bytes, and the end of a text.
class ByteTokenizer final : public TokenizerImpl {
 public:
  ByteTokenizer();

  void encode(std::string_view text, SpecialText special, std::vector<int32_t>& ids) const override;
  [[nodiscard]] std::string decode(const std::vector<int32_t>& ids) const override;
  [[nodiscard]] int64_t vocab_size() const override;
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override;
  [[nodiscard]] std::optional<std::string> token(int32_t id) const override;
};

}  // namespace argosy::text
