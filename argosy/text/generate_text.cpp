#include "argosy/text/generate_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "argosy/base/check.h"

namespace argosy::text {
namespace {

constexpr const char* kGenerateText = "text.generate_text";

/// Turns tokens into pieces of text as they come.
class GrowingText final {
 public:
  GrowingText(const Tokenizer& tokenizer, std::vector<int32_t> prompt, const OnText& on_text)
      : tokenizer_(tokenizer), ids_(std::move(prompt)), on_text_(on_text) {
    told_ = begin_ = decoded().size();
  }

  void add(int32_t id) {
    ids_.push_back(id);
    tell(/*last=*/false);
  }
  void finish() { tell(/*last=*/true); }
  /// What came after the prompt.
  [[nodiscard]] std::string continuation() const {
    const std::string all = decoded();
    return all.substr(std::min(begin_, all.size()));
  }

 private:
  [[nodiscard]] std::string decoded() const {
    return tokenizer_.decode(ids_, {.skip_special = true});
  }

  /// Holds back a character whose last bytes are still to come.
  void tell(bool last) {
    const std::string all = decoded();
    if (!on_text_ || all.size() <= told_) {
      return;
    }
    std::string_view piece = std::string_view(all).substr(told_);
    constexpr std::size_t kMost = 4;  // bytes of a character
    for (std::size_t back = 1; !last && back <= std::min(kMost, piece.size()); ++back) {
      const std::string_view tail = piece.substr(piece.size() - back);
      const auto first = static_cast<unsigned char>(tail.front());
      if (first >= 0xC0U) {
        const std::size_t promised = first < 0xE0U ? 2 : first < 0xF0U ? 3 : 4;
        piece.remove_suffix(back < promised ? back : 0);
        break;
      }
    }
    told_ += piece.size();
    if (!piece.empty()) {
      on_text_(piece);
    }
  }

  const Tokenizer& tokenizer_;
  std::vector<int32_t> ids_;
  const OnText& on_text_;
  std::size_t begin_ = 0;
  std::size_t told_ = 0;
};

}  // namespace

std::string generate_text(const Gpt& model,
                          const Tokenizer& tokenizer,
                          const std::string& prompt,
                          const GenerateOptions& options,
                          const OnText& on_text) {
  ARGOSY_CHECK(tokenizer.vocab_size() <= model->options().vocab_size,
               kGenerateText,
               "the tokenizer has {} tokens and the model {}: it is another model's",
               tokenizer.vocab_size(),
               model->options().vocab_size);
  std::vector<int32_t> ids = tokenizer.encode(prompt);
  if (ids.empty()) {
    ARGOSY_CHECK(tokenizer.end_of_text().has_value(),
                 kGenerateText,
                 "the prompt is empty, and this tokenizer ({}) has no end of text to begin behind. "
                 "Give a prompt",
                 tokenizer.kind());
    ids.push_back(*tokenizer.end_of_text());
  }
  const at::Tensor prompts = torch::tensor(std::vector<int64_t>(ids.begin(), ids.end()))
                                 .unsqueeze(0)
                                 .to(model->parameters().front().device());
  GrowingText text(tokenizer, std::move(ids), on_text);
  GenerateOptions own = options;
  if (!own.stop_token.has_value() && tokenizer.end_of_text().has_value()) {
    own.stop_token = *tokenizer.end_of_text();
  }
  own.on_tokens = [&](const at::Tensor& tokens) {
    const auto id = tokens.item<int64_t>();
    if (id < tokenizer.vocab_size()) {  // a padded vocabulary has tokens without a text
      text.add(static_cast<int32_t>(id));
    }
    if (options.on_tokens) {
      options.on_tokens(tokens);
    }
  };
  (void)generate(model, prompts, own);
  text.finish();
  return prompt + text.continuation();
}

}  // namespace argosy::text
