#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace argosy::text {

/// GPT-2's way to cut text into words: contractions, letters, numbers and other characters, each
/// with the space before it, and runs of white space.
/// Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, encoder.py.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Cuts text into pieces by a regular expression, as the pre-tokenizers of Hugging Face do.
///
/// The expression is one of Oniguruma's; `\s` is White_Space, and `\p{…}` are Unicode's classes.
/// Bytes that are not UTF-8 are a piece of their own, and the text on each side is cut as if it
/// stood alone. Thread-safe.
class Splitter final {
 public:
  enum class Keep {
    kAll,      ///< matches and what stands between them
    kMatches,  ///< the rest is dropped
  };

  /// Errors: DataError "[where] F: …" naming what the expression must not have.
  Splitter(std::string_view pattern, Keep keep, const char* where, const std::string& path);

  /// Calls piece() with each piece, in order.
  /// Errors: DataError for an expression that takes too many steps here.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

  [[nodiscard]] const std::string& pattern() const { return pattern_; }
  [[nodiscard]] Keep keep() const { return keep_; }

 private:
  struct Code;
  void split_valid(std::string_view text, const std::function<void(std::string_view)>& piece) const;

  std::string pattern_;
  Keep keep_;
  std::shared_ptr<const Code> code_;
};

}  // namespace argosy::text
