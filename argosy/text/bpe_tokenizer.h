#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "argosy/text/added_tokens.h"
#include "argosy/text/bpe_model.h"
#include "argosy/text/splitter.h"
#include "argosy/text/tokenizer_impl.h"

namespace argosy::text {

/// One thing that happens to a piece of text before it is merged: it gets a space in front, or it
/// is cut.
struct PreTokenizerStep {
  bool prefix_space = false;  ///< unless it begins with a space; then splitter is unset
  std::optional<Splitter> splitter{};
};

/// What a file says of a byte-level BPE.
struct BpeParts {
  BpeModel::Tokens tokens{};
  std::vector<BpeMerge> merges{};
  std::vector<AddedToken> added{};
  std::vector<PreTokenizerStep> steps{};
  BpeModel::WholeWords whole_words = BpeModel::WholeWords::kMerged;
  std::optional<int32_t> begin_of_text{};  ///< unset: by a usual name
  std::optional<int32_t> end_of_text{};
  std::optional<int32_t> pad{};
};

/// Returns the steps of GPT-2's own tokenizer.
[[nodiscard]] std::vector<PreTokenizerStep> gpt2_steps();

/// Byte-level BPE, as GPT-2 and Llama 3 have it.
class BpeTokenizer final : public TokenizerImpl {
 public:
  explicit BpeTokenizer(BpeParts parts);

  void encode(std::string_view text, SpecialText special, std::vector<int32_t>& ids) const override;
  [[nodiscard]] std::string decode(const std::vector<int32_t>& ids) const override;
  [[nodiscard]] int64_t vocab_size() const override { return vocab_size_; }
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const override;
  [[nodiscard]] std::optional<std::string> token(int32_t id) const override;
  void save(const std::string& folder) const override;

  [[nodiscard]] const BpeModel& model() const { return model_; }
  [[nodiscard]] const AddedTokens& added() const { return added_; }

 private:
  class Words;
  void cut(std::string_view piece, size_t step, Words& words) const;

  BpeModel model_;
  AddedTokens added_;
  std::vector<PreTokenizerStep> steps_;
  BpeModel::WholeWords whole_words_;
  std::vector<const std::string*> added_names_{};  // by id; null: an ordinary token
  std::unordered_map<std::string_view, int32_t> added_ids_{};
  int64_t vocab_size_ = 0;
};

}  // namespace argosy::text
