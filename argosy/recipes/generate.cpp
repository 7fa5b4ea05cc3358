#include <algorithm>
#include <optional>
#include <utility>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/checkpoint/read_weights.h"
#include "argosy/engine/device.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/language.h"
#include "argosy/recipes/restore.h"
#include "argosy/recipes/run.h"
#include "argosy/text/generate_text.h"
#include "argosy/text/open_tokenizer.h"

namespace argosy::recipes {
namespace {

constexpr const char* kWhere = "recipes.generate";

struct Speaker {
  text::Gpt gpt;
  text::Tokenizer tokenizer;
};

/// What the command says, else the run. Errors: UsageError if neither says it.
std::string said(const std::string& given,
                 const std::optional<StoredRecipe>& run,
                 std::string TrainSettings::*setting,
                 const GenerateSettings& settings) {
  ARGOSY_CHECK(!given.empty() || run.has_value(),
               kWhere,
               "{}: no recipe.json lies there that says which model it is. Give --model and "
               "--tokenizer",
               settings.checkpoint);
  return !given.empty() ? given : run->settings.*setting;
}

Speaker of_hugging_face(const GenerateSettings& settings, const text::GptOptions& shape) {
  Speaker speaker{.gpt = text::Gpt(shape),
                  .tokenizer = text::open_tokenizer(
                      settings.tokenizer.empty() ? settings.checkpoint : settings.tokenizer)};
  load_hugging_face(*speaker.gpt, shape, settings.checkpoint);
  return speaker;
}

Speaker speaker_of(const GenerateSettings& settings) {
  if (const auto shape = hugging_face_shape(settings.checkpoint); shape && settings.model.empty()) {
    return of_hugging_face(settings, *shape);
  }
  const std::optional<StoredRecipe> run = find_description(settings.checkpoint);
  const RunWeights weights = weights_in(settings.checkpoint, run);
  const std::string model = said(settings.model, run, &TrainSettings::model, settings);
  const Spec spec = parse_spec(kModels, model);
  ARGOSY_CHECK(find_entry(kModels, models(), spec.name).material == Material::kText,
               kWhere,
               "{} is no language model. What it predicts: argosy predict",
               spec.name);
  text::Tokenizer tokenizer =
      text::open_tokenizer(said(settings.tokenizer, run, &TrainSettings::tokenizer, settings));
  text::GptOptions shape = text::gpt_options(model);
  if (!settings.model.empty() && model.find("vocab_size=") == std::string::npos) {
    shape.vocab_size = tokenizer.vocab_size();
  }
  Speaker speaker{.gpt = text::Gpt(shape), .tokenizer = std::move(tokenizer)};
  load_weights(*speaker.gpt, weights);
  return speaker;
}

}  // namespace

std::string generate(const GenerateSettings& settings, const text::OnText& on_text) {
  text::GenerateOptions options{.temperature = settings.temperature,
                                .top_k = settings.top_k,
                                .top_p = settings.top_p,
                                .seed = static_cast<uint64_t>(settings.seed)};
  options.validate();  // before slow files
  const at::Device device = engine::set_device(settings.device, 0);
  Speaker speaker = speaker_of(settings);
  speaker.gpt->to(device);
  const int64_t prompt =
      std::max<int64_t>(std::ssize(speaker.tokenizer.encode(settings.prompt)), 1);
  const int64_t context = speaker.gpt->options().context;
  options.max_new_tokens = settings.max_new_tokens.value_or(std::max<int64_t>(context - prompt, 0));
  ARGOSY_CHECK(prompt + options.max_new_tokens <= context,
               kWhere,
               "--prompt has {} token{}, {} new ones are wanted, and the model's context is {}. "
               "Give a shorter --prompt, or fewer --max_new_tokens",
               prompt,
               prompt == 1 ? "" : "s",
               options.max_new_tokens,
               context);
  return text::generate_text(speaker.gpt, speaker.tokenizer, settings.prompt, options, on_text);
}

}  // namespace argosy::recipes
