#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/text/models/gpt_options.h"

namespace argosy::text {

/// The keys and values of the tokens that a model has seen, so that the next token costs one
/// token's work. See GptImpl::forward_cached().
///
/// Cost: 2 · layers · kv_heads · head_width values for each token of each sequence, allocated at
/// the first use. Not thread-safe.
class KeyValueCache final {
 public:
  /// `capacity`: the most tokens of a sequence. Errors: UsageError if it is not 1 to
  /// options.context.
  KeyValueCache(const GptOptions& options, int64_t capacity);

  /// Returns the number of tokens so far.
  [[nodiscard]] int64_t length() const { return length_; }
  [[nodiscard]] int64_t capacity() const { return capacity_; }

  /// Adds keys and values [N, K, T, D] of the next T tokens in one layer. Returns those of all
  /// tokens, [N, K, length() + T, D]. Errors: UsageError beyond the capacity, or for another N.
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> append(std::size_t layer,
                                                         const at::Tensor& keys,
                                                         const at::Tensor& values);
  /// Counts T more tokens, after all layers have got them.
  void advance(int64_t tokens) { length_ += tokens; }

 private:
  struct Layer {
    at::Tensor keys{};
    at::Tensor values{};
  };
  std::vector<Layer> layers_;
  int64_t capacity_;
  int64_t length_ = 0;
};

}  // namespace argosy::text
