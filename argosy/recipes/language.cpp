#include "argosy/recipes/language.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/deferred.h"
#include "argosy/engine/seed.h"
#include "argosy/engine/state_dict.h"
#include "argosy/fleet/fleet.h"
#include "argosy/loss/from_network.h"
#include "argosy/metrics/perplexity.h"
#include "argosy/os/fd.h"
#include "argosy/parallel/recompute.h"
#include "argosy/recipes/token_cache.h"
#include "argosy/text/generate_text.h"
#include "argosy/text/models/gpt_loss.h"
#include "argosy/text/models/hugging_face.h"
#include "argosy/text/open_tokenizer.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUsualLength = 256;  // tokens of a window, of models that are not published ones

bool gives(const Spec& spec, std::string_view option) {
  return std::ranges::find(spec.options, option, &std::pair<std::string, std::string>::first) !=
         spec.options.end();
}

int64_t at_most(int64_t windows, int64_t limit) {
  return limit == 0 ? windows : std::min(windows, limit);
}

/// Windows of text for training, and those of the text's end to evaluate on.
struct Cut {
  text::TokenWindows training;
  std::optional<text::TokenWindows> evaluation{};
};

Cut cut(const text::TokenFile& tokens, int64_t length, const Values& values) {
  const double share = values.number("holdout");
  const int64_t limit = values.whole("limit");
  ARGOSY_CHECK(share >= 0 && share < 1, kData.where, "holdout: expected 0 to 1, got {}", share);
  ARGOSY_CHECK(limit >= 0, kData.where, "limit: expected 0 or more, got {}", limit);
  ARGOSY_CHECK(tokens.size() > length,
               kData.where,
               "the text has {} tokens, and a window takes {} (--sequence_length and the last "
               "target). Give a shorter --sequence_length, or more text",
               tokens.size(),
               length + 1);
  const int64_t all = text::TokenWindows(tokens, {.sequence_length = length}).size();
  int64_t held = 0;
  if (share > 0 && all > 1) {
    held = std::clamp<int64_t>(static_cast<int64_t>(share * static_cast<double>(all)), 1, all - 1);
  }
  const auto windows_of = [&](int64_t first, int64_t count) {
    return text::TokenWindows(tokens,
                              {.sequence_length = length,
                               .first = first * length,
                               .tokens = at_most(count, limit) * length + 1});
  };
  Cut made{.training = windows_of(0, all - held)};
  if (held > 0) {
    made.evaluation = windows_of(all - held, held);
  }
  return made;
}

/// Shows after each epoch what the model makes of a text.
class Sample final : public train::Callback {
 public:
  Sample(text::Gpt gpt, text::Tokenizer tokenizer, std::string prompt)
      : gpt_(std::move(gpt)), tokenizer_(std::move(tokenizer)), prompt_(std::move(prompt)) {}

  void on_epoch_end(const train::Epoch& epoch) override {
    constexpr int64_t kNewTokens = 100;
    std::optional<fleet::detail::WholeModels> whole;
    if (fleet::strategy().shards()) {
      whole.emplace();
    }
    if (!epoch.model.is_first_worker()) {
      return;
    }
    const int64_t room = gpt_->options().context - std::ssize(tokenizer_.encode(prompt_));
    const std::string text = text::generate_text(
        gpt_,
        tokenizer_,
        prompt_,
        {.max_new_tokens = std::clamp<int64_t>(room, 0, kNewTokens), .temperature = 0.8});
    fleet::print("sample after epoch {}: {}\n", epoch.epoch + 1, text);
  }

 private:
  text::Gpt gpt_;
  text::Tokenizer tokenizer_;
  std::string prompt_;
};

}  // namespace

bool is_published(const std::string& model) {
  const std::string name = parse_spec(kModels, model).name;
  return name != "gpt" && name != "llama";
}

text::GptOptions shape_of_model(const Wanted& wanted, const text::Tokenizer& tokenizer) {
  const Spec spec = parse_spec(kModels, wanted.model);
  text::GptOptions shape = text::gpt_options(wanted.model);
  if (!gives(spec, "vocab_size")) {
    shape.vocab_size = tokenizer.vocab_size();
  }
  ARGOSY_CHECK(shape.vocab_size >= tokenizer.vocab_size(),
               kModels.where,
               "--model has vocab_size={}, and the tokenizer has {} tokens. Leave vocab_size out, "
               "or give --tokenizer",
               shape.vocab_size,
               tokenizer.vocab_size());
  if (!is_published(wanted.model) && !gives(spec, "context")) {
    shape.context = wanted.sequence_length.value_or(kUsualLength);
  }
  ARGOSY_CHECK(wanted.sequence_length.value_or(1) <= shape.context,
               kModels.where,
               "--sequence_length {} is more than the model's context of {}. Give the model "
               "context={}",
               wanted.sequence_length.value_or(1),
               shape.context,
               wanted.sequence_length.value_or(1));
  return shape;
}

text::Gpt deferred_gpt(const text::GptOptions& shape, bool recompute) {
  auto gpt = engine::deferred<text::Gpt>(shape);
  if (recompute) {
    gpt->set_block_runner([](const text::GptBlock& block, const at::Tensor& x) {
      return parallel::recompute(block, x);
    });
  }
  return gpt;
}

LanguageAssembly::LanguageAssembly(const Wanted& wanted, const text::Tokenizer& tokenizer)
    : tokenizer_(tokenizer) {
  data_spec = parse_data(wanted.data);
  ARGOSY_CHECK(data_spec.entry->material == Material::kText,
               kData.where,
               "--data {}: {} learns from text: --data text:FILE",
               wanted.data,
               wanted.model);
  ARGOSY_CHECK(!data_spec.path.empty(),
               kData.where,
               "\"{}\": expected a path: text:FILE, a text, a folder of texts or a token file",
               wanted.data);
  std::error_code error;
  tokenizer_path_ = fs::exists(wanted.tokenizer, error)
                        ? fs::absolute(wanted.tokenizer).lexically_normal().string()
                        : wanted.tokenizer;
  const text::GptOptions shape = shape_of_model(wanted, tokenizer_);
  const int64_t length = wanted.sequence_length.value_or(shape.context);
  const Values values(kData, data_spec.entry->row, data_spec.options.options);
  Cut text = cut(open_tokens(data_spec, values, tokenizer_), length, values);
  splits_.push_back({.name = "train", .windows = std::move(text.training)});
  if (text.evaluation.has_value()) {
    splits_.push_back({.name = "valid", .windows = *std::move(text.evaluation)});
  }
  model_text = text::to_string(shape);
  seed_everything(wanted.seed);
  gpt_ = deferred_gpt(shape, wanted.recompute);
  model = {.module = gpt_.ptr(),
           .model = [gpt = gpt_] { return train::Model(text::GptLoss(gpt)); }};
}

std::vector<std::string> LanguageAssembly::splits() const {
  std::vector<std::string> names;
  for (const Split& split : splits_) {
    names.push_back(split.name);
  }
  return names;
}

const text::TokenWindows& LanguageAssembly::windows(const std::string& split) const {
  const auto found = std::ranges::find(splits_, split, &Split::name);
  ARGOSY_CHECK(found != splits_.end(),
               kData.where,
               "there is no split \"{}\", only {}",
               split,
               fmt::join(splits(), ", "));
  return found->windows;
}

int64_t LanguageAssembly::size(const std::string& split) const {
  return windows(split).size();
}

std::string LanguageAssembly::training_split() const {
  return splits_.front().name;
}

std::string LanguageAssembly::evaluation_split() const {
  return splits_.size() > 1 ? splits_.back().name : "";
}

std::string LanguageAssembly::things() const {
  return fmt::format("windows of {} tokens", splits_.front().windows.options().sequence_length);
}

loss::Loss LanguageAssembly::loss(double /*label_smoothing*/) const {
  return loss::FromNetwork();
}

std::vector<metrics::AnyMetric> LanguageAssembly::metrics() const {
  return {metrics::Perplexity()};
}

train::History LanguageAssembly::fit(train::Model& model,
                                     const TrainSettings& resolved,
                                     const train::FitOptions& options) const {
  train::FitOptions own = options;
  if (!resolved.sample.empty()) {
    own.callbacks.emplace_back(Sample(gpt_, tokenizer_, resolved.sample));
  }
  const text::TokenWindows& training = splits_.front().windows;
  return splits_.size() > 1 ? model.fit(training, splits_.back().windows, own)
                            : model.fit(training, own);
}

train::Logs LanguageAssembly::evaluate(train::Model& model,
                                       const std::string& split,
                                       const train::EvaluateOptions& options) const {
  return model.evaluate(windows(split), options);
}

void LanguageAssembly::resolve(TrainSettings& settings) const {
  const TrainSettings usual;
  const bool augments = settings.augment != usual.augment && settings.augment != "none";
  for (const auto& [option, given] :
       {std::pair("--image_size", settings.image_size.has_value()),
        std::pair("--augment", augments),
        std::pair("--sync_bn", settings.sync_bn),
        std::pair("--label_smoothing", settings.label_smoothing != 0)}) {
    ARGOSY_CHECK(!given,
                 "recipes.train",
                 "{} is about pictures, and {} learns from text",
                 option,
                 settings.model);
  }
  settings.model = model_text;
  settings.tokenizer = tokenizer_path_;
  settings.sequence_length = splits_.front().windows.options().sequence_length;
  settings.augment = "none";
  settings.clip_norm = settings.clip_norm.value_or(1);
  if (settings.optimizer.starts_with("adam")) {
    // Near to GPT-3's table, which has 6e-4 for 768 values, 2e-4 for 2,048.
    settings.lr =
        settings.lr.value_or(std::min(1e-3, 0.5 / static_cast<double>(gpt_->options().width)));
  }
}

void LanguageAssembly::check(const TrainSettings& resolved) const {
  const int64_t prompt = std::ssize(tokenizer_.encode(resolved.sample));
  ARGOSY_CHECK(prompt < gpt_->options().context,
               "recipes.train",
               "--sample has {} tokens, and the model's context is {}",
               prompt,
               gpt_->options().context);
}

nlohmann::ordered_json LanguageAssembly::about_data(const TrainSettings& /*resolved*/) const {
  const text::TokenFile& file = splits_.front().windows.file();
  return {{"tokens", file.size()},
          {"sequence_length", splits_.front().windows.options().sequence_length},
          {"tokenizer", tokenizer_.kind()},
          {"vocab_size", tokenizer_.vocab_size()}};
}

nlohmann::ordered_json LanguageAssembly::about_model() const {
  const int64_t parameters = gpt_->options().parameters();
  return {{"context", gpt_->options().context},
          {"parameters", parameters},
          {"parameter_bytes", parameters * static_cast<int64_t>(sizeof(float))}};
}

std::unique_ptr<Assembly> assemble_language(const Wanted& wanted) {
  return std::make_unique<LanguageAssembly>(
      wanted, text::open_tokenizer(wanted.tokenizer.empty() ? "bytes" : wanted.tokenizer));
}

std::optional<text::GptOptions> hugging_face_shape(const std::string& folder) {
  const fs::path config = fs::path(folder) / "config.json";
  std::error_code error;
  if (!fs::is_regular_file(config, error)) {
    return std::nullopt;
  }
  return text::options_of_config(
      os::read_file(config.string()).or_throw<ConfigError>("recipes.config"));
}

void load_hugging_face(torch::nn::Module& gpt,
                       const text::GptOptions& shape,
                       const std::string& folder) {
  fs::path weights = fs::path(folder) / "model.safetensors";
  const fs::path index = weights.string() + ".index.json";
  std::error_code error;
  if (!fs::exists(weights, error) && fs::exists(index, error)) {
    weights = index;
  }
  engine::load_state_dict(
      gpt, text::from_hugging_face(checkpoint::read_weights(weights.string()), shape));
}

}  // namespace argosy::recipes
