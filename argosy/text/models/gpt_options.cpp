#include "argosy/text/models/gpt_options.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/strings.h"

namespace argosy::text {
namespace {

constexpr const char* kOptions = "text.GptOptions";
constexpr const char* kText = "text.gpt_options";

/// Values of a head in every GPT-2.
constexpr int64_t kHeadWidth = 64;

/// A field by its name in a text.
using Member = std::variant<int64_t GptOptions::*,
                            double GptOptions::*,
                            bool GptOptions::*,
                            NormKind GptOptions::*,
                            PositionKind GptOptions::*,
                            ActivationKind GptOptions::*>;
struct Field {
  const char* name;
  Member member;
};

constexpr std::array<Field, 19> kFields{Field{"vocab_size", &GptOptions::vocab_size},
                                        Field{"layers", &GptOptions::layers},
                                        Field{"width", &GptOptions::width},
                                        Field{"heads", &GptOptions::heads},
                                        Field{"kv_heads", &GptOptions::kv_heads},
                                        Field{"hidden", &GptOptions::hidden},
                                        Field{"context", &GptOptions::context},
                                        Field{"dropout", &GptOptions::dropout},
                                        Field{"bias", &GptOptions::bias},
                                        Field{"tied", &GptOptions::tied},
                                        Field{"norm", &GptOptions::norm},
                                        Field{"positions", &GptOptions::positions},
                                        Field{"activation", &GptOptions::activation},
                                        Field{"norm_epsilon", &GptOptions::norm_epsilon},
                                        Field{"rope_theta", &GptOptions::rope_theta},
                                        Field{"rope_factor", &GptOptions::rope_factor},
                                        Field{"rope_original", &GptOptions::rope_original},
                                        Field{"rope_low", &GptOptions::rope_low},
                                        Field{"rope_high", &GptOptions::rope_high}};

/// The words for the two values of a flag or an enum.
template <typename T>
constexpr std::array<const char*, 2> kWords{"no", "yes"};
template <>
constexpr std::array<const char*, 2> kWords<NormKind>{"layer", "rms"};
template <>
constexpr std::array<const char*, 2> kWords<PositionKind>{"learned", "rotary"};
template <>
constexpr std::array<const char*, 2> kWords<ActivationKind>{"gelu", "swiglu"};

template <typename T>
T parse(const char* field, std::string_view value) {
  if constexpr (std::is_same_v<T, int64_t>) {
    const std::optional<int64_t> number = strings::parse_int(value);
    ARGOSY_CHECK(
        number.has_value(), kText, "{}: expected a whole number, got \"{}\"", field, value);
    return *number;
  } else if constexpr (std::is_same_v<T, double>) {
    const std::optional<double> number = strings::parse_double(value);
    ARGOSY_CHECK(number.has_value(), kText, "{}: expected a number, got \"{}\"", field, value);
    return *number;
  } else {
    const auto& words = kWords<T>;
    ARGOSY_CHECK(value == words[0] || value == words[1],
                 kText,
                 "{}: expected {} or {}, got \"{}\"",
                 field,
                 words[0],
                 words[1],
                 value);
    return static_cast<T>(value == words[1]);
  }
}

template <typename T>
std::string written(const T& value) {
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    return fmt::format("{}", value);
  } else {
    return kWords<T>[static_cast<std::size_t>(value)];
  }
}

/// "; did you mean …?", or nothing.
std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  const std::optional<std::string> found = strings::closest(word, known);
  return found ? fmt::format(". Did you mean \"{}\"?", *found) : "";
}

GptOptions gpt2_of(int64_t layers, int64_t width, int64_t heads) {
  GptOptions options;
  options.layers = layers;
  options.width = width;
  options.heads = heads;
  return options;
}

GptOptions llama_of(
    int64_t layers, int64_t width, int64_t heads, int64_t kv_heads, int64_t hidden) {
  GptOptions options = GptOptions::llama();
  options.layers = layers;
  options.width = width;
  options.heads = heads;
  options.kv_heads = kv_heads;
  options.hidden = hidden;
  return options;
}

GptOptions llama2() {
  GptOptions options = llama_of(32, 4096, 32, 32, 11008);
  options.context = 4096;
  return options;
}

GptOptions llama3() {
  GptOptions options = llama_of(32, 4096, 32, 8, 14336);
  options.vocab_size = 128256;
  options.context = 8192;
  options.rope_theta = 500000;
  return options;
}

GptOptions llama1() {
  GptOptions options = llama_of(32, 4096, 32, 32, 11008);
  options.norm_epsilon = 1e-6;
  return options;
}

/// Sizes as their authors published them.
std::vector<std::pair<std::string, GptOptions>> named_shapes() {
  return {{"gpt", GptOptions::gpt2()},
          {"gpt2", GptOptions::gpt2()},
          {"gpt2-medium", gpt2_of(24, 1024, 16)},
          {"gpt2-large", gpt2_of(36, 1280, 20)},
          {"gpt2-xl", gpt2_of(48, 1600, 25)},
          {"llama", GptOptions::llama()},
          {"tinyllama-1.1b", llama_of(22, 2048, 32, 4, 5632)},
          {"llama-7b", llama1()},
          {"llama2-7b", llama2()},
          {"llama3-8b", llama3()}};
}

GptOptions shape_of_name(std::string_view name) {
  for (auto& [key, options] : named_shapes()) {
    if (key == name) {
      return options;
    }
  }
  const std::vector<std::string> known = gpt_names();
  throw UsageError(kText,
                   fmt::format("unknown model \"{}\": expected one of {}{}",
                               name,
                               fmt::join(known, ", "),
                               nearest(name, known)));
}

void set_field(GptOptions& options, std::string_view name, std::string_view value) {
  std::vector<std::string> known;
  for (const Field& field : kFields) {
    if (field.name == name) {
      std::visit(
          [&]<typename T>(T GptOptions::*member) { options.*member = parse<T>(field.name, value); },
          field.member);
      return;
    }
    known.emplace_back(field.name);
  }
  throw UsageError(kText,
                   fmt::format("unknown field \"{}\": expected one of {}{}",
                               name,
                               fmt::join(known, ", "),
                               nearest(name, known)));
}

}  // namespace

GptOptions GptOptions::gpt2() {
  return {};
}

GptOptions GptOptions::llama() {
  GptOptions options;
  options.vocab_size = 32000;
  options.context = 2048;
  options.bias = false;
  options.tied = false;
  options.norm = NormKind::kRmsNorm;
  options.positions = PositionKind::kRotary;
  options.activation = ActivationKind::kSwiglu;
  return options;
}

int64_t GptOptions::hidden_or_default() const {
  if (hidden != 0) {
    return hidden;
  }
  if (activation == ActivationKind::kGeluTanh) {
    return 4 * width;
  }
  constexpr int64_t kMultiple = 256;
  return (8 * width / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

int64_t GptOptions::parameters() const {
  const int64_t biases = bias ? 1 : 0;
  const int64_t inner = hidden_or_default();
  const int64_t qkv = (heads + 2 * kv_heads_or_default()) * head_width();
  const int64_t up = activation == ActivationKind::kSwiglu ? 2 * inner : inner;
  const int64_t norms = width * (norm == NormKind::kLayerNorm ? 1 + biases : 1);
  const int64_t block =
      (width + biases) * (qkv + up) + (width + inner + 2 * biases) * width + 2 * norms;
  const int64_t tables = vocab_size * width * (tied ? 1 : 2) +
                         (positions == PositionKind::kLearned ? context * width : 0);
  return layers * block + norms + tables;
}

void GptOptions::validate() const {
  for (const Field& field : kFields) {
    const auto* member = std::get_if<int64_t GptOptions::*>(&field.member);
    const std::string_view name = field.name;
    const bool may_be_zero = name == "kv_heads" || name == "hidden" || name == "rope_original";
    if (member != nullptr) {
      const int64_t value = this->**member;
      ARGOSY_CHECK(value > 0 || (may_be_zero && value == 0),
                   kOptions,
                   "{} must be positive{}, got {}",
                   field.name,
                   may_be_zero ? " or 0" : "",
                   value);
    }
  }
  ARGOSY_CHECK(width % heads == 0,
               kOptions,
               "width must be a multiple of heads, got {} and {}",
               width,
               heads);
  ARGOSY_CHECK(heads % kv_heads_or_default() == 0,
               kOptions,
               "kv_heads must divide heads, got {} and {}",
               kv_heads,
               heads);
  ARGOSY_CHECK(positions != PositionKind::kRotary || head_width() % 2 == 0,
               kOptions,
               "width / heads must be even for rotary positions, got {}",
               head_width());
  ARGOSY_CHECK(dropout >= 0 && dropout < 1, kOptions, "dropout must be in [0, 1), got {}", dropout);
  ARGOSY_CHECK(norm_epsilon > 0, kOptions, "norm_epsilon must be positive, got {}", norm_epsilon);
  ARGOSY_CHECK(rope_theta > 0, kOptions, "rope_theta must be positive, got {}", rope_theta);
  ARGOSY_CHECK(rope_factor >= 1, kOptions, "rope_factor must be 1 or more, got {}", rope_factor);
  ARGOSY_CHECK(0 < rope_low && rope_low < rope_high,
               kOptions,
               "rope_low must be positive and less than rope_high, got {} "
               "and {}",
               rope_low,
               rope_high);
  ARGOSY_CHECK(positions == PositionKind::kRotary || rope_factor == 1,
               kOptions,
               "rope_factor is for rotary positions, and these are learned: got {}",
               rope_factor);
}

GptOptions gpt_options(std::string_view text) {
  const std::size_t colon = text.find(':');
  GptOptions options = shape_of_name(strings::trim(text.substr(0, colon)));
  std::set<std::string, std::less<>> given;
  if (colon != std::string_view::npos) {
    for (const std::string& piece : strings::split(text.substr(colon + 1), ',')) {
      const std::size_t equals = piece.find('=');
      ARGOSY_CHECK(equals != std::string::npos,
                   kText,
                   "expected field=value, got \"{}\" in \"{}\"",
                   piece,
                   text);
      const auto name = strings::trim(std::string_view(piece).substr(0, equals));
      set_field(options, name, strings::trim(std::string_view(piece).substr(equals + 1)));
      given.emplace(name);
    }
  }
  if (given.contains("width") && !given.contains("heads") && options.width % kHeadWidth == 0) {
    options.heads = options.width / kHeadWidth;
  }
  options.validate();
  return options;
}

std::vector<std::string> gpt_names() {
  std::vector<std::string> names;
  for (auto& [name, options] : named_shapes()) {
    names.push_back(name);
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> fields_of(const GptOptions& options) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const Field& field : kFields) {
    std::visit(
        [&]<typename T>(T GptOptions::*member) {
          fields.emplace_back(field.name, written(options.*member));
        },
        field.member);
  }
  return fields;
}

std::string to_string(const GptOptions& options) {
  const bool llama = options.norm == NormKind::kRmsNorm;
  const GptOptions plain = llama ? GptOptions::llama() : GptOptions::gpt2();
  std::string text = llama ? "llama" : "gpt";
  char separator = ':';
  for (const Field& field : kFields) {
    std::visit(
        [&]<typename T>(T GptOptions::*member) {
          if (options.*member != plain.*member) {
            text += fmt::format("{}{}={}", separator, field.name, written(options.*member));
            separator = ',';
          }
        },
        field.member);
  }
  return text;
}

}  // namespace argosy::text
