#include "argosy/text/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/text/bpe_tokenizer.h"
#include "argosy/text/vocab_reader.h"

#include <nlohmann/json.hpp>

namespace argosy::text {
namespace {

using Json = nlohmann::json;

constexpr const char* kJson = "text.tokenizer_json";

/// What makes a BpeParts of one file.
class JsonReader final {
 public:
  explicit JsonReader(std::string path)
      : path_(std::move(path)), json_(read_json(kJson, path_)), vocab_(kJson, path_) {}

  BpeParts read() {
    check_normalizer();
    read_model();
    read_added();
    read_steps(member(json_, "pre_tokenizer"));
    check_decoder();
    read_template();
    parts_.tokens = std::move(vocab_.tokens());
    parts_.merges = std::move(vocab_.merges());
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw DataError(kJson, what, {path_}); }
  /// What is well formed and cannot be computed exactly.
  [[noreturn]] void refuse(const std::string& what, const Json& value) const {
    fail(
        fmt::format("{} is not read: got {}. Byte-level BPE as of GPT-2 and Llama 3 is; encode the "
                    "text in Python, and read it by text::TokenFile",
                    what,
                    shown_json(value)));
  }

  /// A member, or null where there is none.
  static const Json& member(const Json& object, const char* name) {
    static const Json null;
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() ? null : *found;
  }
  std::string text(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_string()) {
      fail(fmt::format(
          "expected a string \"{}\", got {} in {}", name, shown_json(value), shown_json(object)));
    }
    return value.get<std::string>();
  }
  bool flag(const Json& object, const char* name, bool otherwise) const {
    const Json& value = member(object, name);
    if (!value.is_null() && !value.is_boolean()) {
      fail(fmt::format("expected true or false for \"{}\", got {}", name, shown_json(value)));
    }
    return value.is_null() ? otherwise : value.get<bool>();
  }

  void check_normalizer() const {
    const Json& normalizer = member(json_, "normalizer");
    const bool nothing = normalizer.is_null() || (member(normalizer, "type") == "Sequence" &&
                                                  member(normalizer, "normalizers").empty());
    if (!nothing) {
      refuse("a normalizer", normalizer);
    }
  }

  void read_model() {
    const Json& model = member(json_, "model");
    // Files of before 2020 do not name the type.
    if (!model.is_object() || (model.contains("type") && model["type"] != "BPE")) {
      refuse("a model of another type than BPE", member(model, "type"));
    }
    for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = member(model, name);
      if (!value.is_null() && value != "") {
        refuse(fmt::format("a model with \"{}\"", name), value);
      }
    }
    const Json& dropout = member(model, "dropout");
    if (!dropout.is_null() && dropout != 0.0) {
      refuse("a model with dropout", dropout);
    }
    if (flag(model, "byte_fallback", false)) {
      refuse("a model with \"byte_fallback\" (sentencepiece's kind)", true);
    }
    vocab_.read(member(model, "vocab"));
    read_merges(member(model, "merges"));
    if (flag(model, "ignore_merges", false)) {
      parts_.whole_words = BpeModel::WholeWords::kFirst;
    }
  }

  void read_merges(const Json& merges) {
    if (!merges.is_array()) {
      fail("expected a list \"merges\", got " + shown_json(merges));
    }
    size_t number = 0;
    for (const Json& merge : merges) {
      const std::string place = fmt::format("merge {}", number++);
      if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        vocab_.add_merge(merge[0].get<std::string>(), merge[1].get<std::string>(), place);
        continue;
      }
      const std::string both = merge.is_string() ? merge.get<std::string>() : "";
      const size_t space = both.find(' ');
      if (space == std::string::npos) {
        fail(fmt::format("{}: expected two tokens, got {}", place, shown_json(merge)));
      }
      vocab_.add_merge(both.substr(0, space), both.substr(space + 1), place);
    }
  }

  void read_added() {
    const Json& added = member(json_, "added_tokens");
    for (const Json& each : added) {
      const Json& id = member(each, "id");
      if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
          id.get<int64_t>() >= vocab_.most_ids()) {
        fail(fmt::format("an added token: expected an \"id\" from 0 to {}, got {}",
                         vocab_.most_ids() - 1,
                         shown_json(each)));
      }
      if (flag(each, "single_word", false)) {
        refuse("an added token of single words", each);
      }
      AddedToken token{.text = text(each, "content"),
                       .id = id.get<int32_t>(),
                       .special = flag(each, "special", false),
                       .lstrip = flag(each, "lstrip", false),
                       .rstrip = flag(each, "rstrip", false),
                       .normalized = flag(each, "normalized", false)};
      if (!token.text.empty()) {
        parts_.added.push_back(std::move(token));
      }
    }
  }

  void read_steps(const Json& step) {
    const Json& type = member(step, "type");
    if (type == "Sequence") {
      for (const Json& each : member(step, "pretokenizers")) {
        read_steps(each);
      }
    } else if (type == "ByteLevel") {
      if (flag(step, "add_prefix_space", true)) {
        parts_.steps.push_back({.prefix_space = true});
      }
      if (flag(step, "use_regex", true)) {
        add_splitter(kGpt2Pattern, Splitter::Keep::kAll);
      }
      byte_level_ = true;
    } else if (type == "Digits") {
      add_splitter(flag(step, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)",
                   Splitter::Keep::kAll);
    } else if (type == "Split") {
      read_split(step);
    } else {
      refuse("a pre-tokenizer other than ByteLevel, Split and Digits", step);
    }
  }

  void read_split(const Json& step) {
    const Json& pattern = member(step, "pattern");
    const std::string behavior = text(step, "behavior");
    const bool invert = flag(step, "invert", false);
    if (!pattern.contains("Regex")) {
      refuse("a Split without a regular expression", step);
    }
    if (behavior == "Isolated") {
      add_splitter(text(pattern, "Regex"), Splitter::Keep::kAll);
    } else if (behavior == "Removed" && invert) {
      add_splitter(text(pattern, "Regex"), Splitter::Keep::kMatches);
    } else {
      refuse("a Split that is not isolated", step);
    }
  }

  void add_splitter(std::string_view pattern, Splitter::Keep keep) {
    parts_.steps.push_back({.splitter = Splitter(pattern, keep, kJson, path_)});
  }

  void check_decoder() const {
    if (!byte_level_) {
      refuse("a pre-tokenizer that is not byte-level", member(json_, "pre_tokenizer"));
    }
    const Json& decoder = member(json_, "decoder");
    if (!decoder.is_null() && member(decoder, "type") != "ByteLevel") {
      refuse("a decoder other than ByteLevel", decoder);
    }
  }

  /// The special tokens that the template puts around a text begin and end it.
  void read_template() {
    const Json& processor = member(json_, "post_processor");
    if (member(processor, "type") == "Sequence") {
      for (const Json& each : member(processor, "processors")) {
        read_template(each);
      }
    } else {
      read_template(processor);
    }
  }

  void read_template(const Json& processor) {
    if (member(processor, "type") != "TemplateProcessing") {
      return;
    }
    bool behind = false;
    for (const Json& item : member(processor, "single")) {
      const Json& special = member(item, "SpecialToken");
      if (special.is_null()) {
        behind = true;
        continue;
      }
      const std::string name = text(special, "id");
      for (const AddedToken& token : parts_.added) {
        if (token.text == name) {
          (behind ? parts_.end_of_text : parts_.begin_of_text) = token.id;
        }
      }
    }
  }

  std::string path_;
  Json json_;
  VocabReader vocab_;
  BpeParts parts_{};
  bool byte_level_ = false;
};

/// The token that tokenizer_config.json names; null: it names none, or no token of ours.
std::optional<int32_t> named(const Json& config, const char* role, const BpeParts& parts) {
  const auto value = config.find(role);
  if (value == config.end()) {
    return std::nullopt;
  }
  const Json& name =
      value->is_object() && value->contains("content") ? (*value)["content"] : *value;
  for (const AddedToken& token : parts.added) {
    if (name == token.text) {
      return token.id;
    }
  }
  return std::nullopt;
}

void read_roles(const std::filesystem::path& config, BpeParts& parts) {
  std::error_code ignored;
  if (!std::filesystem::exists(config, ignored)) {
    return;
  }
  const Json json = read_json(kJson, config.string());
  const auto set = [&](std::optional<int32_t>& role, const char* name) {
    if (const std::optional<int32_t> id = named(json, name, parts)) {
      role = id;
    }
  };
  set(parts.begin_of_text, "bos_token");
  set(parts.end_of_text, "eos_token");
  set(parts.pad, "pad_token");
}

}  // namespace

Tokenizer read_tokenizer_json(const std::string& path) {
  BpeParts parts = JsonReader(path).read();
  read_roles(std::filesystem::path(path).parent_path() / "tokenizer_config.json", parts);
  return Tokenizer(std::make_shared<const BpeTokenizer>(std::move(parts)));
}

}  // namespace argosy::text
