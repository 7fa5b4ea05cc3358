#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/text/pad_sequences.h"
#include "argosy/text/token_file.h"
#include "argosy/text/tokenizer.h"

namespace argosy::text {

struct TokenSequencesOptions {
  int64_t max_length = 1024;  ///< most tokens of an input; a longer sample is cut off
  PadSequences pad{};         ///< how batches are filled up
};

struct LineOptions {
  TokenSequencesOptions sequences{};
  SpecialText special_text = SpecialText::kIds;
  bool bos = false;  ///< begin each line with the token for it
  bool eos = true;   ///< end each line with the token for it
};

/// Samples of different lengths, for a model that predicts the next token: lines, or documents.
///
///     auto lines = text::TokenSequences::lines("lines.txt", tokenizer);
///     data::BucketBatchSampler sampler(lines.lengths(), {.batch_size = 32});
///     data::DataLoader loader(lines, sampler, {.num_workers = 2});
///     for (auto& [inputs, targets] : loader) ...  // i64 [32, longest of the batch] each
///
/// Sample i is (inputs, targets): the tokens of a line without its last one, and without its first.
/// Batches are padded by PadSequences. Lines of less than two tokens have no target and are left
/// out.
/// A handle: copies share the tokens. Thread-safe.
/// Errors: UsageError for a max_length below 1.
class TokenSequences final {
 public:
  /// Takes each of these as a sample.
  explicit TokenSequences(const std::vector<std::vector<int32_t>>& samples,
                          const TokenSequencesOptions& options = {});

  /// Reads the lines of a text file that are not empty. The file may be packed by gzip. The tokens
  /// stay in memory, four bytes each.
  /// Errors: DataError when the file cannot be read; as of Tokenizer::encode().
  [[nodiscard]] static TokenSequences lines(const std::string& path,
                                            const Tokenizer& tokenizer,
                                            const LineOptions& options = {});
  /// Takes the documents of a token file, each with the end of text behind it. Memory: 16 bytes for
  /// each document; the tokens stay in the file.
  /// Errors: UsageError for a file without a header, which does not say what stands between
  /// documents: name it as `end_of_text`.
  [[nodiscard]] static TokenSequences documents(const TokenFile& file,
                                                const TokenSequencesOptions& options = {},
                                                std::optional<int32_t> end_of_text = {});

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(lengths_.size()); }
  /// Inputs and targets: i64 [lengths()[index]] each.
  [[nodiscard]] PadSequences::Sample get(int64_t index) const;
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> collate(
      const std::vector<PadSequences::Sample>& samples, const data::BatchContext& context) const {
    return options_.pad(samples, context);
  }

  /// Lengths of the inputs, for a BucketBatchSampler.
  [[nodiscard]] std::span<const int64_t> lengths() const { return lengths_; }
  /// Number of samples that had no target.
  [[nodiscard]] int64_t left_out() const { return left_out_; }

 private:
  using Copy = std::function<void(int64_t first, std::span<int64_t> out)>;
  TokenSequences(Copy copy, const TokenSequencesOptions& options);
  void add(int64_t begin, int64_t tokens);

  TokenSequencesOptions options_;
  Copy copy_;                      // tokens of all samples
  std::vector<int64_t> begins_{};  // of each sample
  std::vector<int64_t> lengths_{};
  int64_t left_out_ = 0;
};

}  // namespace argosy::text
