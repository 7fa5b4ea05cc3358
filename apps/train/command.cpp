// The command lines of train, evaluate, predict and generate. What they do is argosy/recipes.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"
#include "argosy/fleet/fleet.h"
#include "argosy/program/command_line.h"
#include "argosy/recipes/augment.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/optimizers.h"
#include "argosy/recipes/run.h"
#include "argosy/recipes/schedules.h"
#include "argosy/recipes/settings.h"
#include "argosy/recipes/traffic.h"

#include "apps/torch_commands.h"
#include <nlohmann/json.hpp>

namespace argosy::apps {
namespace {

using Json = nlohmann::ordered_json;

template <typename Entry>
std::vector<recipes::TableRow> rows_of(const std::vector<Entry>& table) {
  std::vector<recipes::TableRow> rows;
  for (const Entry& entry : table) {
    rows.push_back(entry.row);
  }
  return rows;
}

void print_list(const std::string& what) {
  const std::map<std::string, std::vector<recipes::TableRow>> lists{
      {"models", rows_of(recipes::models())},
      {"data", rows_of(recipes::data_sets())},
      {"optimizers", rows_of(recipes::optimizers())},
      {"schedules", rows_of(recipes::schedules())},
      {"augment", rows_of(recipes::augmentations())},
      {"traffic", rows_of(recipes::traffic_ways())}};
  if (what == "all") {
    for (const auto& [name, rows] : lists) {
      fmt::print("{}\n\n{}\n", name, recipes::listing(rows));
    }
    return;
  }
  const auto list = lists.find(what);
  if (list == lists.end()) {
    throw UsageError("recipes.list",
                     fmt::format("--list {}: expected one of models, data, optimizers, schedules, "
                                 "augment, traffic, all",
                                 what));
  }
  fmt::print("{}", recipes::listing(list->second));
}

/// Figures by name: "loss: 0.4312 - acc: 0.8421".
std::string figures(const Json& result) {
  std::string text;
  for (const auto& [name, value] : result.items()) {
    text += fmt::format("{}{}: {:.4f}",
                        text.empty() ? "" : " - ",
                        name,
                        value.is_number() ? value.get<double>() : 0.0);
  }
  return text;
}

/// Prints on the first process. Models of clicks are trained without fleet, and only one has a
/// result.
void say(const std::string& text) {
  if (!fleet::is_initialized() || fleet::is_first_worker()) {
    fleet::detail::print_line(text);
  }
}

/// How many processes would share the work.
int processes() {
  const auto size = strings::parse_int(env::get("WORLD_SIZE").value_or("1"));
  return static_cast<int>(size.value_or(1));
}

program::Option weights_row(recipes::EvaluateSettings& settings) {
  return {"WEIGHTS",
          "",
          "A run's folder, a checkpoint, .pt, .safetensors",
          &settings.weights,
          {.required = true}};
}

constexpr const char* kTrainHelp =
    "Train a model on a data set, alone or as a process of argosy launch.\n"
    "Names with options: adamw:betas=0.9/0.99,eps=1e-6 · cosine:eta_min=1e-5 · "
    "crop:padding=4,flip";

constexpr const char* kTrainFooter =
    "Examples:\n"
    "  argosy train --model resnet18 --data cifar10:cifar-10-python.tar.gz \\\n"
    "    --epochs 10 --batch_size 128 --optimizer momentum --lr 0.1 \\\n"
    "    --schedule cosine --augment crop,flip\n"
    "  argosy launch --nproc_per_node 2 \\\n"
    "    argosy train --config runs/first --run_dir runs/second";

int run_train(const recipes::TrainSettings& settings, bool dry_run, bool json) {
  if (dry_run) {
    const recipes::Plan plan = recipes::plan(settings, processes());
    const bool serves = env::get("TRAINING_ROLE").value_or("") == "PSERVER";
    if (env::get("RANK").value_or("0") == "0" && !serves) {  // all ranks have the same one
      fmt::print("{}", json ? plan.to_json().dump() + "\n" : plan.to_string());
    }
    return 0;
  }
  const Json result = recipes::train(settings);
  if (result.is_null()) {  // a server, or a worker beside the first
    return 0;
  }
  if (json) {
    say(result.dump() + "\n");
  } else {
    const auto steps = result["steps"].get<int64_t>();
    const std::string reached = figures(result["result"]);  // none where nothing was left to do
    say(fmt::format("{} after {} update{}, {:.0f} s{}{}\n{}",
                    result["ended"].get<std::string>(),
                    steps,
                    steps == 1 ? "" : "s",
                    result["seconds"].get<double>(),
                    reached.empty() ? "" : ": ",
                    reached,
                    result.contains("weights")
                        ? fmt::format("weights: {}\n", result["weights"].get<std::string>())
                        : ""));
  }
  return result.value("exit_code", 0);
}

}  // namespace

int train(const std::vector<std::string>& args) {
  std::string list;
  bool channels_last = false;
  bool dry_run = false;
  bool json = false;
  recipes::TrainSettings settings;
  program::Options options = options_of(settings);
  const program::Options own{
      {"--channels_last", "", "--memory_format channels_last", &channels_last, {}, "How it learns"},
      {"--list",
       "WHAT",
       "Prints models, data, optimizers, schedules, augment, traffic; all",
       &list},
      {"--dry_run", "", "Says what it would do, and writes nothing", &dry_run},
      {"--json", "", "The last line is the result as JSON", &json}};
  options.insert(options.end(), own.begin(), own.end());
  const program::HelpText about{.what = kTrainHelp, .name = "argosy train", .end = kTrainFooter};
  if (parse_with_config(about, std::move(options), args, settings)) {
    return 0;
  }
  if (!list.empty()) {
    print_list(list);
    return 0;
  }
  if (channels_last) {
    settings.memory_format = "channels_last";
  }
  return run_train(settings, dry_run, json);
}

int evaluate(const std::vector<std::string>& args) {
  recipes::EvaluateSettings settings;
  bool json = false;
  program::Options options = options_of(settings);
  options.insert(options.begin(), weights_row(settings));
  options.push_back(program::json_option(&json));
  if (program::parse_or_help(
          {.what = "Loss and metrics of a run, a checkpoint or a file of weights over a data set.",
           .name = "argosy evaluate",
           .end = "Example: argosy evaluate runs/first --split test"},
          options,
          args)) {
    return 0;
  }
  const Json result = recipes::evaluate(settings);
  if (json) {
    say(result.dump() + "\n");
  } else {
    say(fmt::format("{}: {} samples of {}: {}\n",
                    result["weights"].get<std::string>(),
                    result["samples"].get<int64_t>(),
                    result["split"].get<std::string>(),
                    figures(result["result"])));
  }
  return 0;
}

int predict(const std::vector<std::string>& args) {
  recipes::PredictSettings settings;
  std::vector<std::string> pictures;
  bool json = false;
  program::Options options = options_of(settings);
  options.insert(options.begin(), weights_row(settings));
  options.push_back(
      {"PICTURES", "", "Picture files or folders. Default: the data set of the run", &pictures});
  options.push_back({"--json", "", "The last line says what was written, as JSON", &json});
  if (program::parse_or_help(
          {.what = "Predict with the weights of a run, for pictures or a data set.",
           .name = "argosy predict",
           .end = "Examples:\n"
                  "  argosy predict runs/first holiday/ cat.jpg --topk 3\n"
                  "  argosy predict runs/first --split test --out test.csv --sheet test.html"},
          options,
          args)) {
    return 0;
  }
  const Json result = recipes::predict(settings, pictures);
  if (json) {
    say(result.dump() + "\n");
  } else if (!settings.out.empty() && settings.out != "-") {
    say(fmt::format(
        "{} predictions in {}{}\n",
        result["samples"].get<int64_t>(),
        settings.out,
        result.contains("right") ? fmt::format(", {} right", result["right"].get<int64_t>()) : ""));
  }
  return 0;
}

int generate(const std::vector<std::string>& args) {
  recipes::GenerateSettings settings;
  if (program::parse_or_help(
          {.what = "Continue a text with a trained language model, token by token.",
           .name = "argosy generate",
           .end = "Example: argosy generate --checkpoint runs/first --prompt 'In the beginning' "
                  "--temperature 0.8"},
          options_of(settings),
          args)) {
    return 0;
  }
  bool begun = false;
  const auto write = [&](std::string_view piece) {
    fmt::print("{}{}", std::exchange(begun, true) ? "" : settings.prompt, piece);
    std::fflush(stdout);
  };
  (void)recipes::generate(settings, write);
  fmt::print("{}\n", begun ? "" : settings.prompt);
  return 0;
}

}  // namespace argosy::apps
