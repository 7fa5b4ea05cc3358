// The command lines of train, evaluate and predict. What they do is argosy/recipes.
#include "apps/train/command.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"
#include "argosy/fleet/fleet.h"
#include "argosy/recipes/augment.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/models.h"
#include "argosy/recipes/optimizers.h"
#include "argosy/recipes/run.h"
#include "argosy/recipes/schedules.h"
#include "argosy/recipes/settings.h"

#include "apps/checkpoint/arguments.h"
#include <nlohmann/json.hpp>

namespace argosy::apps {
namespace {

using Json = nlohmann::ordered_json;

/// The options of a table as words of the command line: the table reads them itself, so that a file
/// and the command line are judged alike.
class Words final {
 public:
  template <typename S>
  void add_to(CLI::App& app, const recipes::SettingTable<S>& table) {
    const Json defaults = table.to_json(S());
    for (const recipes::Setting<S>& row : table.rows()) {
      const std::string option = std::string("--") + row.name;
      const Json& fallback = defaults[row.name];
      if (fallback.is_boolean()) {
        app.add_flag(option, values_[row.name], row.help)->group(row.group);
        continue;
      }
      const std::string shown = fallback.is_null()     ? ""
                                : fallback.is_string() ? fallback.template get<std::string>()
                                                       : fallback.dump();
      app.add_option(option, values_[row.name], row.help)
          ->group(row.group)
          ->type_name(shown.empty() ? "X" : "X=" + shown);
    }
  }

  template <typename S>
  void apply(const CLI::App& app, const recipes::SettingTable<S>& table, S& settings) const {
    for (const auto& [name, text] : values_) {
      if (app.get_option("--" + name)->count() > 0) {
        table.set(settings, name, text);
      }
    }
  }

 private:
  std::map<std::string, std::string> values_;
};

template <typename Entry>
std::vector<recipes::Row> rows_of(const std::vector<Entry>& table) {
  std::vector<recipes::Row> rows;
  for (const Entry& entry : table) {
    rows.push_back(entry.row);
  }
  return rows;
}

void print_list(const std::string& what) {
  const std::map<std::string, std::vector<recipes::Row>> lists{
      {"models", rows_of(recipes::models())},
      {"data", rows_of(recipes::data_sets())},
      {"optimizers", rows_of(recipes::optimizers())},
      {"schedules", rows_of(recipes::schedules())},
      {"augment", rows_of(recipes::augmentations())}};
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
                                 "augment, all",
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

/// How many processes would share the work.
int processes() {
  const auto size = strings::parse_int(env::get("WORLD_SIZE").value_or("1"));
  return static_cast<int>(size.value_or(1));
}

struct Common {
  std::string config{};
  std::string list{};
  bool dry_run = false;
  bool json = false;
  bool channels_last = false;
};

constexpr const char* kTrainHelp =
    "Train a model on a data set, alone or as a rank of argosy launch.\n"
    "Names with options: adamw:betas=0.9/0.99,eps=1e-6 · cosine:eta_min=1e-5 · "
    "crop:padding=4,flip\n";

constexpr const char* kTrainFooter =
    "\nExamples:\n"
    "  argosy train --model resnet18 --data cifar10:cifar-10-python.tar.gz \\\n"
    "    --epochs 10 --batch_size 128 --optimizer momentum --lr 0.1 \\\n"
    "    --schedule cosine --augment crop,flip\n"
    "  argosy launch --nproc_per_node 2 \\\n"
    "    argosy train --config runs/first --run_dir runs/second";

int run_train(const recipes::TrainSettings& settings, const Common& common) {
  if (common.dry_run) {
    const recipes::Plan plan = recipes::plan(settings, processes());
    if (env::get("RANK").value_or("0") == "0") {  // all ranks have the same one
      fmt::print("{}", common.json ? plan.to_json().dump() + "\n" : plan.to_string());
    }
    return 0;
  }
  const Json result = recipes::train(settings);
  if (common.json) {
    fleet::print("{}\n", result.dump());
  } else {
    const auto steps = result["steps"].get<int64_t>();
    const std::string reached = figures(result["result"]);  // none where nothing was left to do
    fleet::print("{} after {} update{}, {:.0f} s{}{}\n{}",
                 result["ended"].get<std::string>(),
                 steps,
                 steps == 1 ? "" : "s",
                 result["seconds"].get<double>(),
                 reached.empty() ? "" : ": ",
                 reached,
                 result.contains("weights")
                     ? fmt::format("weights: {}\n", result["weights"].get<std::string>())
                     : "");
  }
  return 0;
}

}  // namespace

int train(const std::vector<std::string>& args) {
  CLI::App app(kTrainHelp);
  app.name("argosy train");
  app.footer(kTrainFooter);
  Common common;
  Words words;
  words.add_to(app, recipes::train_table());
  app.add_flag("--channels_last", common.channels_last, "--memory_format channels_last")
      ->group("How it learns");
  app.add_option("--config", common.config, "Options out of a file: JSON, or a run's folder");
  app.add_option("--list", common.list, "Prints models, data, optimizers, schedules, augment; all");
  app.add_flag("--dry_run", common.dry_run, "Says what it would do, and writes nothing");
  app.add_flag("--json", common.json, "The last line is the result as JSON");
  if (parse_or_help(app, args, "recipes.arguments")) {
    return 0;
  }
  if (!common.list.empty()) {
    print_list(common.list);
    return 0;
  }
  recipes::TrainSettings settings;
  if (!common.config.empty()) {
    const Json options = recipes::read_options(common.config);
    try {
      recipes::train_table().set(settings, options);
    } catch (const UsageError& error) {
      const std::string what = error.what();  // "[where] what is wrong"
      throw ConfigError("recipes.config", common.config + ": " + what.substr(what.find(' ') + 1));
    }
  }
  words.apply(app, recipes::train_table(), settings);
  if (common.channels_last) {
    settings.memory_format = "channels_last";
  }
  return run_train(settings, common);
}

int evaluate(const std::vector<std::string>& args) {
  CLI::App app("Loss and metrics of a run, a checkpoint or a file of weights over a data set.\n");
  app.name("argosy evaluate");
  app.footer("\nExample: argosy evaluate runs/first --split test");
  recipes::EvaluateSettings settings;
  Words words;
  bool json = false;
  app.add_option("WEIGHTS", settings.weights, "A run's folder, a checkpoint, .pt, .safetensors")
      ->required();
  words.add_to(app, recipes::evaluate_table());
  app.add_flag("--json", json, "For programs");
  if (parse_or_help(app, args, "recipes.arguments")) {
    return 0;
  }
  words.apply(app, recipes::evaluate_table(), settings);
  const Json result = recipes::evaluate(settings);
  if (json) {
    fleet::print("{}\n", result.dump());
  } else {
    fleet::print("{}: {} samples of {}: {}\n",
                 result["weights"].get<std::string>(),
                 result["samples"].get<int64_t>(),
                 result["split"].get<std::string>(),
                 figures(result["result"]));
  }
  return 0;
}

int predict(const std::vector<std::string>& args) {
  CLI::App app("What a run's weights say of pictures, or of a data set.\n");
  app.name("argosy predict");
  app.footer(
      "\nExamples:\n"
      "  argosy predict runs/first holiday/ cat.jpg --topk 3\n"
      "  argosy predict runs/first --split test --out test.csv --sheet test.png");
  recipes::PredictSettings settings;
  std::vector<std::string> pictures;
  Words words;
  bool json = false;
  app.add_option("WEIGHTS", settings.weights, "A run's folder, a checkpoint, .pt, .safetensors")
      ->required();
  app.add_option("PICTURES", pictures, "Picture files, folders; none: the run's data set");
  words.add_to(app, recipes::predict_table());
  app.add_flag("--json", json, "The last line says what was written, as JSON");
  if (parse_or_help(app, args, "recipes.arguments")) {
    return 0;
  }
  words.apply(app, recipes::predict_table(), settings);
  const Json result = recipes::predict(settings, pictures);
  if (json) {
    fleet::print("{}\n", result.dump());
  } else if (!settings.out.empty() && settings.out != "-") {
    fleet::print(
        "{} predictions in {}{}\n",
        result["samples"].get<int64_t>(),
        settings.out,
        result.contains("right") ? fmt::format(", {} right", result["right"].get<int64_t>()) : "");
  }
  return 0;
}

}  // namespace argosy::apps
