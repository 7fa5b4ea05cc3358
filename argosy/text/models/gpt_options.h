#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argosy::text {

/// How the values of a token are normalized before attention and before the feed-forward layer.
enum class NormKind : uint8_t {
  kLayerNorm,  ///< around their mean, with a weight and, if the model has biases, a bias
  kRmsNorm,    ///< by their root mean square, with a weight
};

/// How a model knows the order of tokens.
enum class PositionKind : uint8_t {
  kLearned,  ///< a table of vectors, one for each position, added to the tokens'
  kRotary,   ///< queries and keys are rotated by angles that grow with the position
};

/// What lies between the two projections of the feed-forward layer.
enum class ActivationKind : uint8_t {
  kGeluTanh,  ///< GELU by its tanh formula
  kSwiglu,    ///< SiLU of one half times the other half
};

/// The shape of a decoder-only Transformer. The defaults are the small GPT-2's.
///
///     text::GptOptions options = text::GptOptions::llama();
///     options.layers = 4;
///
/// Source: Radford et al., "Language models are unsupervised multitask learners", 2019; Touvron et
/// al., "LLaMA", 2023; names and defaults of transformers' GPT2Config and LlamaConfig.
struct GptOptions {
  int64_t vocab_size = 50257;  ///< tokens are 0 to vocab_size - 1
  int64_t layers = 12;         ///< blocks, each attention and a feed-forward layer
  int64_t width = 768;         ///< values for each token; a multiple of heads
  int64_t heads = 12;          ///< of queries
  /// Of keys and values; a divisor of heads. 0: as many as heads. Fewer: grouped-query attention.
  int64_t kv_heads = 0;
  /// Values for each token inside the feed-forward layer. 0: 4·width for kGeluTanh; for kSwiglu
  /// 8/3·width, rounded up to a multiple of 256, as Llama's.
  int64_t hidden = 0;
  int64_t context = 1024;  ///< the most tokens of a sequence
  double dropout = 0;      ///< probability, in training: embeddings, attention, ends of branches
  bool bias = true;        ///< projections (and kLayerNorm) have a bias; the head never has one
  bool tied = true;        ///< the head's weight is the table of tokens
  NormKind norm = NormKind::kLayerNorm;
  PositionKind positions = PositionKind::kLearned;
  ActivationKind activation = ActivationKind::kGeluTanh;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000;  ///< base of the angles of kRotary
  /// They are divided by it ("linear" scaling); with rope_original only slow ones, as
  /// Llama 3.1 does ("llama3"): see ops::RotaryScaling, where the last two are `low` and `high`.
  double rope_factor = 1;
  int64_t rope_original = 0;
  double rope_low = 1;
  double rope_high = 4;

  /// The small GPT-2 (124 M parameters), which is also `GptOptions()`.
  [[nodiscard]] static GptOptions gpt2();
  /// Llama's kind of block in the sizes of the small GPT-2: rotary positions, RMSNorm, SwiGLU, no
  /// biases, an untied head, 32,000 tokens and a context of 2,048.
  [[nodiscard]] static GptOptions llama();

  /// Errors: UsageError that names the field.
  void validate() const;

  /// Each of these puts a value in place of a 0.
  [[nodiscard]] int64_t kv_heads_or_default() const { return kv_heads == 0 ? heads : kv_heads; }
  [[nodiscard]] int64_t hidden_or_default() const;
  /// Values of one head.
  [[nodiscard]] int64_t head_width() const { return width / heads; }
  /// Parameters of a model of this shape; tied ones count once.
  [[nodiscard]] int64_t parameters() const;

  bool operator==(const GptOptions&) const = default;
};

/// Reads a shape as it is written on a command line: a name, then fields of GptOptions.
///
///     gpt2                                  a published size
///     gpt:layers=4,width=256                GPT-2's kind of block; "llama:…" is Llama's
///     llama3-8b:context=4096,dropout=0.1    any name may be followed by fields
///
/// Names: gpt (the same as gpt2), gpt2, gpt2-medium, gpt2-large, gpt2-xl, llama, tinyllama-1.1b,
/// llama-7b, llama2-7b, llama3-8b. Values: numbers; yes or no; layer or rms; learned or rotary;
/// gelu or swiglu. A width without heads has a head for each 64 values, as GPT-2 has, if it can.
/// Errors: UsageError for an unknown name or field, with the nearest known one, or for a value that
/// does not fit; then those of validate().
[[nodiscard]] GptOptions gpt_options(std::string_view text);
/// Returns the names that gpt_options() knows.
[[nodiscard]] std::vector<std::string> gpt_names();
/// Returns each field with its value, as gpt_options() reads them: {"layers", "12"}.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> fields_of(const GptOptions& options);

/// Returns a text that gpt_options() reads: "gpt:…" or "llama:…" and the fields that differ.
[[nodiscard]] std::string to_string(const GptOptions& options);

}  // namespace argosy::text
