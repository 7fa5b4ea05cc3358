#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "argosy/engine/state_dict.h"
#include "argosy/text/models/gpt_options.h"

namespace argosy::text {

/// A parameter of a Gpt, and what Hugging Face's transformers calls it.
struct HuggingFaceName {
  std::string ours{};
  /// Theirs; of several, ours has the rows one after the other (queries, keys, values).
  std::vector<std::string> theirs{};
  bool transposed = false;  ///< theirs is [inputs, outputs]: GPT-2's projections
};

/// Returns the names of all parameters in the order of the model. GPT-2's for its kind of block
/// (transformer.h.0.attn.c_attn.weight), Llama's for its kind (model.layers.0.self_attn.q_proj…).
/// Errors: UsageError for a shape that is neither GPT2LMHeadModel's nor LlamaForCausalLM's.
[[nodiscard]] std::vector<HuggingFaceName> hugging_face_names(const GptOptions& options);

/// Returns weights of transformers' names and shapes as those of a Gpt.
///
///     const text::GptOptions options = text::options_of_config(*os::read_file("config.json"));
///     text::Gpt model(options);
///     engine::load_state_dict(model, text::from_hugging_face(
///         checkpoint::read_weights("model.safetensors"), options));
///
/// A checkpoint of several files is read by its index: "model.safetensors.index.json".
/// GPT-2's names may lack "transformer.", as in the first published files. A tied head and buffers
/// (attn.bias, attn.masked_bias, rotary_emb.inv_freq) are left out.
/// Errors: UsageError that lists what is missing or unexpected, or of another shape; that of
/// hugging_face_names().
[[nodiscard]] engine::StateDict from_hugging_face(const engine::StateDict& theirs,
                                                  const GptOptions& options);

/// Returns the weights of a Gpt under transformers' names, for checkpoint::save_weights() into
/// model.safetensors. They may share the memory of `ours`. A tied head is left out, as transformers
/// does. Errors: as from_hugging_face().
[[nodiscard]] engine::StateDict to_hugging_face(const engine::StateDict& ours,
                                                const GptOptions& options);

/// Reads transformers' config.json of a GPT-2 or Llama.
/// Errors: ConfigError naming the field: not JSON, another model_type, a value of the wrong kind,
/// or what a Gpt does not have (another activation, a rope_type other than default, linear and
/// llama3, a head_dim that is not hidden_size / num_attention_heads, several dropouts).
[[nodiscard]] GptOptions options_of_config(std::string_view json);

/// Returns a config.json with which transformers' AutoModelForCausalLM reads the weights.
/// Errors: that of hugging_face_names().
[[nodiscard]] std::string config_of_options(const GptOptions& options);

}  // namespace argosy::text
