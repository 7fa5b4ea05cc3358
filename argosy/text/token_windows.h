#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/text/token_file.h"

namespace argosy::text {

struct TokenWindowsOptions {
  int64_t sequence_length = 1024;  ///< tokens of an input
  /// Tokens from the beginning of a window to that of the next. 0: sequence_length, so that every
  /// token but the first is a target once.
  int64_t stride = 0;
  /// The tokens of the file that windows are made of: from `first` on, to the end or `tokens` of
  /// them. What one set of windows leaves out, another can be evaluated on.
  int64_t first = 0;
  std::optional<int64_t> tokens{};
};

/// Windows of equal length over a token file, for a model that predicts the next token.
///
///     text::TokenWindows train(text::TokenFile("books.tokens"), {.sequence_length = 1024});
///     data::DataLoader loader(train, {.batch_size = 16, .shuffle = true, .num_workers = 2});
///     for (auto& [inputs, targets] : loader) ...  // i64 [16, 1024] each
///
/// Window i has the tokens from first + i · stride on; its targets are the tokens that follow each
/// of them. Documents are packed: a window goes on in the next one behind an end of text. What is
/// left at the end and fills no window is left out. Errors: UsageError for options, and for a file,
/// or a part of one, shorter than a window. Thread-safe. Cost: a batch is copied once, from the
/// mapped file into the batch.
class TokenWindows final {
 public:
  explicit TokenWindows(TokenFile file, const TokenWindowsOptions& options = {});

  [[nodiscard]] int64_t size() const { return size_; }
  /// Inputs and targets: i64 [sequence_length] each.
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> get(int64_t index) const;
  /// The same of several windows: i64 [windows, sequence_length] each.
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;

  [[nodiscard]] const TokenFile& file() const { return file_; }
  [[nodiscard]] const TokenWindowsOptions& options() const { return options_; }

 private:
  void write(int64_t index, int64_t* inputs, int64_t* targets) const;

  TokenFile file_;
  TokenWindowsOptions options_;
  int64_t size_ = 0;
};

}  // namespace argosy::text
