#include "argosy/text/models/hugging_face.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"

#include <nlohmann/json.hpp>

namespace argosy::text {
namespace {

using engine::StateDict;
using nlohmann::json;

constexpr const char* kNames = "text.hugging_face";
constexpr const char* kConfig = "text.config";

bool is_gpt2(const GptOptions& options) {
  return options.norm == NormKind::kLayerNorm && options.positions == PositionKind::kLearned &&
         options.activation == ActivationKind::kGeluTanh && options.bias && options.tied &&
         options.kv_heads_or_default() == options.heads;
}

bool is_llama(const GptOptions& options) {
  return options.norm == NormKind::kRmsNorm && options.positions == PositionKind::kRotary &&
         options.activation == ActivationKind::kSwiglu;
}

void check_family(const GptOptions& options) {
  options.validate();
  ARGOSY_CHECK(is_gpt2(options) || is_llama(options),
               kNames,
               "transformers has no model of this shape: expected that of GPT-2 (layer norm, "
               "learned positions, gelu, biases, a tied head) or Llama (rms norm, rotary, swiglu), "
               "got {}",
               to_string(options));
}

/// A layer with a weight and perhaps a bias.
void add_layer(std::vector<HuggingFaceName>& names,
               const std::string& ours,
               const std::vector<std::string>& theirs,
               bool has_bias,
               bool transposed = false) {
  const auto each = [&](const char* what) {
    std::vector<std::string> all;
    for (const std::string& layer : theirs) {
      all.push_back(layer + what);
    }
    return all;
  };
  names.push_back({ours + ".weight", each(".weight"), transposed});
  if (has_bias) {
    names.push_back({ours + ".bias", each(".bias"), false});
  }
}

std::vector<HuggingFaceName> gpt2_names(const GptOptions& options) {
  std::vector<HuggingFaceName> names;
  add_layer(names, "embed", {"transformer.wte"}, false);
  add_layer(names, "positions", {"transformer.wpe"}, false);
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string ours = fmt::format("blocks.{}.", i);
    const std::string theirs = fmt::format("transformer.h.{}.", i);
    add_layer(names, ours + "norm1", {theirs + "ln_1"}, true);
    add_layer(names, ours + "attention.qkv", {theirs + "attn.c_attn"}, true, true);
    add_layer(names, ours + "attention.out", {theirs + "attn.c_proj"}, true, true);
    add_layer(names, ours + "norm2", {theirs + "ln_2"}, true);
    add_layer(names, ours + "mlp.up", {theirs + "mlp.c_fc"}, true, true);
    add_layer(names, ours + "mlp.down", {theirs + "mlp.c_proj"}, true, true);
  }
  add_layer(names, "norm", {"transformer.ln_f"}, true);
  return names;
}

std::vector<HuggingFaceName> llama_names(const GptOptions& options) {
  std::vector<HuggingFaceName> names;
  add_layer(names, "embed", {"model.embed_tokens"}, false);
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string ours = fmt::format("blocks.{}.", i);
    const std::string theirs = fmt::format("model.layers.{}.", i);
    const std::string attention = theirs + "self_attn.";
    const std::string mlp = theirs + "mlp.";
    add_layer(names, ours + "norm1", {theirs + "input_layernorm"}, false);
    add_layer(names,
              ours + "attention.qkv",
              {attention + "q_proj", attention + "k_proj", attention + "v_proj"},
              options.bias);
    add_layer(names, ours + "attention.out", {attention + "o_proj"}, options.bias);
    add_layer(names, ours + "norm2", {theirs + "post_attention_layernorm"}, false);
    add_layer(names, ours + "mlp.up", {mlp + "gate_proj", mlp + "up_proj"}, options.bias);
    add_layer(names, ours + "mlp.down", {mlp + "down_proj"}, options.bias);
  }
  add_layer(names, "norm", {"model.norm"}, false);
  if (!options.tied) {
    add_layer(names, "head", {"lm_head"}, false);
  }
  return names;
}

/// How many rows of ours each of theirs has.
std::vector<int64_t> rows_of(const HuggingFaceName& name, const GptOptions& options) {
  if (name.theirs.size() == 3) {
    const int64_t kv = options.kv_heads_or_default() * options.head_width();
    return {options.width, kv, kv};
  }
  return {options.hidden_or_default(), options.hidden_or_default()};
}

/// What stands in files and is no parameter.
bool is_known_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq") || name == "lm_head.weight";
}

/// The names of the first published files begin with "h.0." or "wte.".
std::string with_prefix(const std::string& name, const GptOptions& options) {
  const bool bare =
      is_gpt2(options) && !name.starts_with("transformer.") && name != "lm_head.weight";
  return bare ? "transformer." + name : name;
}

[[noreturn]] void fail_names(const std::vector<std::string>& missing,
                             const std::vector<std::string>& unexpected) {
  throw UsageError(
      kNames,
      fmt::format("the entries are not those of the model: missing {}; unexpected {}",
                  missing.empty() ? "nothing" : fmt::format("{}", fmt::join(missing, ", ")),
                  unexpected.empty() ? "nothing" : fmt::format("{}", fmt::join(unexpected, ", "))));
}

/// One of ours from its parts.
at::Tensor joined(const HuggingFaceName& name,
                  const std::vector<at::Tensor>& parts,
                  const GptOptions& options) {
  if (parts.size() > 1) {
    const std::vector<int64_t> rows = rows_of(name, options);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      ARGOSY_CHECK(parts[i].dim() >= 1 && parts[i].size(0) == rows[i],
                   kNames,
                   "{}: expected {} rows, got the shape {}",
                   name.theirs[i],
                   rows[i],
                   shape(parts[i]));
    }
    return at::cat(parts);
  }
  ARGOSY_CHECK(!name.transposed || parts[0].dim() == 2,
               kNames,
               "{}: expected a matrix, got the shape {}",
               name.theirs[0],
               shape(parts[0]));
  return name.transposed ? parts[0].t().contiguous() : parts[0];
}

/// A field of config.json; errors name it.
class ConfigFields final {
 public:
  explicit ConfigFields(std::string_view text) {
    try {
      fields_ = json::parse(text);
    } catch (const json::exception& error) {
      throw ConfigError(kConfig,
                        fmt::format("expected the JSON of a config.json: {}", error.what()));
    }
    if (!fields_.is_object()) {
      throw ConfigError(kConfig, "expected an object of JSON");
    }
  }
  /// Those of a field that is an object; none where it is not there.
  [[nodiscard]] ConfigFields inside(const char* name) const {
    return {find<json>(name).value_or(json::object()), fmt::format("{}{}.", within_, name)};
  }

  /// Returns nullopt for null and for a field that is not there.
  template <typename T>
  [[nodiscard]] std::optional<T> find(const char* name) const {
    const auto found = fields_.find(name);
    if (found == fields_.end() || found->is_null()) {
      return std::nullopt;
    }
    const bool fits = std::is_same_v<T, bool>          ? found->is_boolean()
                      : std::is_same_v<T, std::string> ? found->is_string()
                      : std::is_same_v<T, int64_t>     ? found->is_number_integer()
                      : std::is_same_v<T, double>      ? found->is_number()
                                                       : found->is_object();
    if (!fits) {
      throw ConfigError(kConfig,
                        fmt::format("{}{} has the wrong kind: {}", within_, name, found->dump()));
    }
    return found->get<T>();
  }
  template <typename T>
  [[nodiscard]] T get(const char* name) const {
    const std::optional<T> value = find<T>(name);
    if (!value) {
      throw ConfigError(kConfig, fmt::format("the field {}{} is missing", within_, name));
    }
    return *value;
  }
  /// A field that a Gpt has in one way only.
  template <typename T>
  void expect(const char* name, const T& only) const {
    const T value = find<T>(name).value_or(only);
    if (value != only) {
      throw ConfigError(
          kConfig,
          fmt::format(
              "{}: a Gpt has {} only, got {}", name, json(only).dump(), json(value).dump()));
    }
  }

 private:
  ConfigFields(json fields, std::string within)
      : fields_(std::move(fields)), within_(std::move(within)) {}

  json fields_{};
  std::string within_{};  // "rope_scaling."
};

GptOptions gpt2_options(const ConfigFields& fields) {
  GptOptions options = GptOptions::gpt2();
  options.vocab_size = fields.get<int64_t>("vocab_size");
  options.layers = fields.get<int64_t>("n_layer");
  options.width = fields.get<int64_t>("n_embd");
  options.heads = fields.get<int64_t>("n_head");
  options.hidden = fields.find<int64_t>("n_inner").value_or(0);
  options.context = fields.get<int64_t>("n_positions");
  options.norm_epsilon = fields.find<double>("layer_norm_epsilon").value_or(options.norm_epsilon);
  options.dropout = fields.find<double>("resid_pdrop").value_or(0.1);
  for (const char* name : {"attn_pdrop", "embd_pdrop"}) {
    if (fields.find<double>(name).value_or(0.1) != options.dropout) {
      throw ConfigError(kConfig,
                        fmt::format("{} differs from resid_pdrop: a Gpt has one dropout", name));
    }
  }
  const std::string activation =
      fields.find<std::string>("activation_function").value_or("gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    throw ConfigError(
        kConfig, fmt::format("activation_function: a Gpt has gelu_new only, got {}", activation));
  }
  fields.expect("tie_word_embeddings", true);
  fields.expect("scale_attn_weights", true);
  fields.expect("scale_attn_by_inverse_layer_idx", false);
  fields.expect("add_cross_attention", false);
  return options;
}

/// The angles of rotary positions. In files from before 2025 their base stands by itself.
void read_rope(const ConfigFields& fields, GptOptions& options) {
  options.rope_theta = fields.find<double>("rope_theta").value_or(options.rope_theta);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const ConfigFields rope = fields.inside(name);
    const std::string old_type = rope.find<std::string>("type").value_or("default");
    const std::string type = rope.find<std::string>("rope_type").value_or(old_type);
    if (type != "default" && type != "linear" && type != "llama3") {
      throw ConfigError(
          kConfig,
          fmt::format("{}: a Gpt has rope_type default, linear or llama3, got {}", name, type));
    }
    options.rope_theta = rope.find<double>("rope_theta").value_or(options.rope_theta);
    if (type != "default") {
      options.rope_factor = rope.get<double>("factor");
    }
    if (type == "llama3") {
      options.rope_original = rope.get<int64_t>("original_max_position_embeddings");
      options.rope_low = rope.get<double>("low_freq_factor");
      options.rope_high = rope.get<double>("high_freq_factor");
    }
  }
}

/// The other way round; null where nothing is scaled.
nlohmann::ordered_json rope_scaling_of(const GptOptions& options) {
  if (options.rope_factor == 1) {
    return nullptr;
  }
  if (options.rope_original == 0) {
    return {{"rope_type", "linear"}, {"factor", options.rope_factor}};
  }
  return {{"rope_type", "llama3"},
          {"factor", options.rope_factor},
          {"original_max_position_embeddings", options.rope_original},
          {"low_freq_factor", options.rope_low},
          {"high_freq_factor", options.rope_high}};
}

GptOptions llama_options(const ConfigFields& fields) {
  GptOptions options = GptOptions::llama();
  options.vocab_size = fields.get<int64_t>("vocab_size");
  options.layers = fields.get<int64_t>("num_hidden_layers");
  options.width = fields.get<int64_t>("hidden_size");
  options.heads = fields.get<int64_t>("num_attention_heads");
  options.kv_heads = fields.find<int64_t>("num_key_value_heads").value_or(options.heads);
  options.hidden = fields.get<int64_t>("intermediate_size");
  options.context = fields.get<int64_t>("max_position_embeddings");
  options.norm_epsilon = fields.find<double>("rms_norm_eps").value_or(1e-6);
  read_rope(fields, options);
  options.dropout = fields.find<double>("attention_dropout").value_or(0);
  options.tied = fields.find<bool>("tie_word_embeddings").value_or(false);
  options.bias = fields.find<bool>("attention_bias").value_or(false);
  fields.expect("mlp_bias", options.bias);
  fields.expect("hidden_act", std::string("silu"));
  fields.expect("head_dim", options.heads > 0 ? options.width / options.heads : 0);
  return options;
}

}  // namespace

std::vector<HuggingFaceName> hugging_face_names(const GptOptions& options) {
  check_family(options);
  return is_gpt2(options) ? gpt2_names(options) : llama_names(options);
}

StateDict from_hugging_face(const StateDict& theirs, const GptOptions& options) {
  std::map<std::string, at::Tensor> given;
  for (const auto& [name, tensor] : theirs) {
    given.emplace(with_prefix(name, options), tensor);
  }
  StateDict ours;
  std::set<std::string> used;
  std::vector<std::string> missing, unexpected;
  for (const HuggingFaceName& name : hugging_face_names(options)) {
    std::vector<at::Tensor> parts;
    for (const std::string& part : name.theirs) {
      const auto found = given.find(part);
      if (found == given.end()) {
        missing.push_back(part);
      } else {
        parts.push_back(found->second);
        used.insert(part);
      }
    }
    if (parts.size() == name.theirs.size()) {
      ours.set(name.ours, joined(name, parts, options));
    }
  }
  for (const auto& [name, tensor] : given) {
    if (!used.contains(name) && !is_known_buffer(name)) {
      unexpected.push_back(name);
    }
  }
  if (!missing.empty() || !unexpected.empty()) {
    fail_names(missing, unexpected);
  }
  return ours;
}

StateDict to_hugging_face(const StateDict& ours, const GptOptions& options) {
  StateDict theirs;
  std::set<std::string> used;
  std::vector<std::string> missing, unexpected;
  for (const HuggingFaceName& name : hugging_face_names(options)) {
    const at::Tensor* const tensor = ours.find(name.ours);
    if (tensor == nullptr) {
      missing.push_back(name.ours);
      continue;
    }
    used.insert(name.ours);
    if (name.theirs.size() == 1) {
      theirs.set(name.theirs[0], name.transposed ? tensor->t() : *tensor);
      continue;
    }
    const std::vector<at::Tensor> parts = tensor->split_with_sizes(rows_of(name, options));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      theirs.set(name.theirs[i], parts[i]);
    }
  }
  for (const auto& [name, tensor] : ours) {
    if (!used.contains(name)) {
      unexpected.push_back(name);
    }
  }
  if (!missing.empty() || !unexpected.empty()) {
    fail_names(missing, unexpected);
  }
  return theirs;
}

GptOptions options_of_config(std::string_view json) {
  const ConfigFields fields(json);
  const std::string type = fields.get<std::string>("model_type");
  if (type != "gpt2" && type != "llama") {
    throw ConfigError(kConfig, fmt::format("model_type: expected gpt2 or llama, got {}", type));
  }
  const GptOptions options = type == "gpt2" ? gpt2_options(fields) : llama_options(fields);
  try {
    options.validate();
  } catch (const UsageError& error) {
    throw ConfigError(kConfig, error.what());
  }
  return options;
}

std::string config_of_options(const GptOptions& options) {
  check_family(options);
  nlohmann::ordered_json fields;
  if (is_gpt2(options)) {
    fields = {{"architectures", {"GPT2LMHeadModel"}},
              {"model_type", "gpt2"},
              {"vocab_size", options.vocab_size},
              {"n_layer", options.layers},
              {"n_embd", options.width},
              {"n_head", options.heads},
              {"n_inner", options.hidden_or_default()},
              {"n_positions", options.context},
              {"layer_norm_epsilon", options.norm_epsilon},
              {"resid_pdrop", options.dropout},
              {"attn_pdrop", options.dropout},
              {"embd_pdrop", options.dropout},
              {"activation_function", "gelu_new"},
              {"tie_word_embeddings", true}};
  } else {
    fields = {{"architectures", {"LlamaForCausalLM"}},
              {"model_type", "llama"},
              {"vocab_size", options.vocab_size},
              {"num_hidden_layers", options.layers},
              {"hidden_size", options.width},
              {"num_attention_heads", options.heads},
              {"num_key_value_heads", options.kv_heads_or_default()},
              {"intermediate_size", options.hidden_or_default()},
              {"max_position_embeddings", options.context},
              {"rms_norm_eps", options.norm_epsilon},
              {"rope_theta", options.rope_theta},
              {"rope_scaling", rope_scaling_of(options)},
              {"attention_dropout", options.dropout},
              {"attention_bias", options.bias},
              {"mlp_bias", options.bias},
              {"hidden_act", "silu"},
              {"tie_word_embeddings", options.tied}};
  }
  return fields.dump(2) + "\n";
}

}  // namespace argosy::text
