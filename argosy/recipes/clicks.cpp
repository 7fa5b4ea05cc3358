#include "argosy/recipes/clicks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/engine/named.h"
#include "argosy/engine/seed.h"
#include "argosy/recipes/description.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/optimizers.h"
#include "argosy/recipes/parts.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

constexpr const char* kTrain = "recipes.train";
constexpr int64_t kUsualStaleness = 8;

/// All options of a model of clicks: "wide_deep" has those of "deepfm".
Values click_values(const std::string& model) {
  const Spec spec = parse_spec(kModels, model);
  const ModelEntry& entry = find_entry(kModels, models(), spec.name);
  return {kModels, {.name = entry.row.name, .options = click_options()}, spec.options};
}

std::vector<int64_t> widths_of(const std::string& text) {
  std::vector<int64_t> widths;
  for (const std::string& word : strings::split(text, 'x')) {
    const std::optional<int64_t> width = strings::parse_int(word);
    ARGOSY_CHECK(width.value_or(0) > 0,
                 kModels.where,
                 "hidden={}: expected widths from 1 on with \"x\" between them, as 400x400",
                 text);
    widths.push_back(*width);
  }
  return widths;
}

recommend::ClickModelOptions model_options(const TrainSettings& settings) {
  const Values values = click_values(settings.model);
  const int64_t entry = values.whole("entry");
  ARGOSY_CHECK(entry >= 1, kModels.where, "entry={}: expected 1 or more", entry);
  const std::string& rule =
      values.word("rule", {"adam", "shared_adam", "adagrad", "std_adagrad", "naive"});
  return {.network = parse_spec(kModels, settings.model).name == "deepfm"
                         ? recommend::ClickNetwork::kDeepFm
                         : recommend::ClickNetwork::kWideDeep,
          .dim = values.whole("dim"),
          .hidden = widths_of(values.text("hidden")),
          .rule = ps::row_rule(rule),
          .row_lr = values.number("row_lr"),
          .initial_range = static_cast<float>(values.number("initial_range")),
          .entry = entry > 1 ? ps::Entry::count(entry) : ps::Entry(),
          .seed = static_cast<uint64_t>(settings.seed)};
}

/// Options that do nothing here, with the reason.
void refuse_others(const TrainSettings& s) {
  const TrainSettings usual;
  struct Refused {
    const char* option;
    bool given;
    const char* why;
  };
  constexpr const char* kPictures = "is about pictures";
  constexpr const char* kText = "is about text";
  constexpr const char* kStream =
      "needs the length of an epoch, and a log is a stream that nobody has counted";
  constexpr const char* kServers =
      "is about processes that each have the model, and here it lies on servers: argosy launch "
      "--server_num N --worker_num M";
  for (const Refused& each :
       {Refused{"--image_size", s.image_size.has_value(), kPictures},
        Refused{"--augment", s.augment != usual.augment && s.augment != "none", kPictures},
        Refused{"--sync_bn", s.sync_bn, kPictures},
        Refused{"--label_smoothing", s.label_smoothing != 0, kPictures},
        Refused{"--memory_format", s.memory_format != usual.memory_format, kPictures},
        Refused{"--tokenizer", s.tokenizer != usual.tokenizer, kText},
        Refused{"--sequence_length", s.sequence_length.has_value(), kText},
        Refused{"--sample", !s.sample.empty(), kText},
        Refused{"--recompute", s.recompute, kText},
        Refused{"--schedule", s.schedule != usual.schedule, kStream},
        Refused{"--warmup", s.warmup != 0, kStream},
        Refused{"--mesh", !s.mesh.empty(), kServers},
        Refused{"--sharding_stage", s.sharding_stage.has_value(), kServers},
        Refused{"--offload_folder", !s.offload_folder.empty(), kServers},
        Refused{"--virtual_ranks", s.virtual_ranks != 0, kServers},
        Refused{"--traffic", s.traffic != usual.traffic, kServers},
        Refused{"--num_workers",
                s.num_workers != usual.num_workers,
                "is about loader threads, and one thread reads a log ahead"},
        Refused{"--resume",
                s.resume != usual.resume && s.run_dir == "none",
                "goes on from the checkpoints of a run, which --run_dir none leaves out"},
        Refused{"--accumulate",
                s.accumulate != 1,
                "would send the same rows later: take a larger --batch_size"},
        Refused{"--drop_last", s.drop_last, "is always so: all workers make as many steps"},
        Refused{"--clip_norm",
                s.clip_norm.value_or(0) != 0,
                "is about the norm of all gradients, of which each server has a part"},
        Refused{
            "--ema", s.ema.has_value(), "averages weights of a process, and they lie on servers"},
        Refused{"--amp", s.amp != "off", "would round gradients that servers add in 32 bits"},
        Refused{"--device",
                s.device != "auto" && s.device != "cpu",
                "names a GPU, and what lies on servers is computed on the CPU"}}) {
    ARGOSY_CHECK(!each.given,
                 kTrain,
                 "{} {}. Leave it out for {}",
                 each.option,
                 each.why,
                 parse_spec(kModels, s.model).name);
  }
  // Not a word of the option's row: a recipe of other models has none.
  ARGOSY_CHECK(s.mode.empty() || s.mode == "sync" || s.mode == "async" || s.mode == "half_async",
               kTrain,
               "--mode: expected one of sync, async, half_async, got \"{}\"",
               s.mode);
  ARGOSY_CHECK(!s.staleness.has_value() || s.mode == "half_async",
               kTrain,
               "--staleness {} is about --mode half_async, and the mode is {}",
               s.staleness.value_or(0),
               s.mode.empty() ? "sync" : s.mode);
  ARGOSY_CHECK(!s.val.empty() || (s.eval_freq == usual.eval_freq && !s.eval_batch_size.has_value()),
               kTrain,
               "--eval_freq and --eval_batch_size are about evaluations: add --val criteo:FILE");
  ARGOSY_CHECK(
      s.run_dir != "none" || (!s.save_freq.has_value() && s.keep_last == usual.keep_last),
      kTrain,
      "--save_freq and --keep_last are about checkpoints, which --run_dir none leaves out");
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

/// To be found from anywhere.
std::string resolved_log(const std::string& option, const std::string& text) {
  (void)click_log(option, text);
  DataSpec spec = parse_data(text);
  spec.path = absolute(spec.path);
  return spec.to_string();
}

bool is_model_of_clicks(const std::string& model) {
  return !model.empty() &&
         find_entry(kModels, models(), parse_spec(kModels, model).name).material ==
             Material::kClicks;
}

}  // namespace

bool is_of_clicks(const TrainSettings& settings) {
  return is_model_of_clicks(settings.model);
}

bool is_of_clicks(const EvaluateSettings& settings) {
  if (!settings.model.empty()) {
    return is_model_of_clicks(settings.model);
  }
  const std::optional<StoredRecipe> run = find_description(settings.weights);
  return run.has_value() && is_of_clicks(run->settings);
}

void refuse_servers(const TrainSettings& settings) {
  ARGOSY_CHECK(!ps::Roles::are_set(),
               kTrain,
               "{} has no rows for servers. Start it with argosy launch -n N; servers are for "
               "deepfm and wide_deep",
               settings.model.empty() ? "a model" : settings.model);
}

TrainSettings resolve_clicks(const TrainSettings& settings) {
  refuse_others(settings);
  ARGOSY_CHECK(!settings.data.empty(), kData.where, "--data is required: --data criteo:FILE");
  const Spec optimizer = parse_spec(kOptimizers, settings.optimizer);
  const OptimizerEntry& entry = find_entry(kOptimizers, optimizers(), optimizer.name);
  (void)model_options(settings);
  TrainSettings resolved = settings;
  resolved.data = resolved_log("--data", settings.data);
  if (!settings.val.empty()) {
    resolved.val = resolved_log("--val", settings.val);
  }
  resolved.model = click_values(settings.model).to_string();
  resolved.augment = "none";
  resolved.mode = settings.mode.empty() ? "sync" : settings.mode;
  if (resolved.mode == "half_async") {
    resolved.staleness = settings.staleness.value_or(kUsualStaleness);
  }
  if (!settings.pretrained.empty()) {
    resolved.pretrained = absolute(newest_checkpoint(settings.pretrained));
  }
  resolved.lr = settings.lr.value_or(entry.lr);
  resolved.weight_decay = settings.weight_decay.value_or(entry.weight_decay);
  return resolved;
}

ClickParts click_parts(const TrainSettings& resolved) {
  seed_everything(static_cast<uint64_t>(resolved.seed));
  recommend::ClickModel model(model_options(resolved));
  return {.model = model, .optimizer = make_optimizer(resolved, engine::named_parameters(*model))};
}

ClickLogSpec click_log(const std::string& option, const std::string& text) {
  const DataSpec spec = parse_data(text);
  ARGOSY_CHECK(spec.entry->material == Material::kClicks && !spec.path.empty(),
               kData.where,
               "{} {}: expected a log of clicks, criteo:FILE",
               option,
               text);
  const Values values(kData, spec.entry->row, spec.options.options);
  const int64_t limit = values.whole("limit");
  ARGOSY_CHECK(limit >= 0, kData.where, "{} {}: limit: expected 0 or more", option, text);
  return {.path = spec.path, .limit = limit};
}

void check_click_log(const std::string& option, const std::string& text) {
  const ClickLogSpec log = click_log(option, text);
  formats::ClickBatch line;
  if (formats::CriteoReader(log.path).read(1, line) == 0) {
    throw DataError(
        kTrain, fmt::format("{} names a log without a line", option), {.path = log.path});
  }
}

ps::Roles click_roles(const TrainSettings& settings) {
  if (ps::Roles::are_set()) {
    return ps::Roles::from_environment();
  }
  const int64_t processes = strings::parse_int(env::get("WORLD_SIZE").value_or("1")).value_or(1);
  ARGOSY_CHECK(
      processes == 1,
      kTrain,
      "{} processes without servers: the rows of {} lie on servers, or in the only process. "
      "Type argosy launch --server_num 1 --worker_num {} argosy train …",
      processes,
      parse_spec(kModels, settings.model).name,
      processes);
  if (!settings.mode.empty() && settings.mode != "sync") {
    log::warn(
        "[recipes.train] --mode {} is about workers that do not wait for each other, and this is "
        "the only process: argosy launch --server_num 1 --worker_num 2 argosy train …",
        settings.mode);
  }
  return ps::Roles::alone();
}

}  // namespace argosy::recipes
