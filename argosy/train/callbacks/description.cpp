#include "argosy/train/callbacks/description.h"

#include <fmt/format.h>

#include <string_view>

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/module.h>

#include "argosy/base/secrets.h"
#include "argosy/base/text.h"
#include "argosy/fleet/fleet.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::train::detail {
namespace {

using nlohmann::ordered_json;

/// "argosy::vision::LeNetImpl" is "LeNet".
std::string network_name(const torch::nn::Module& network) {
  std::string name = network.name();
  name = name.substr(name.rfind(':') + 1);  // npos + 1 is 0
  const std::string_view suffix = "Impl";
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  return name;
}

ordered_json optimizer_of(const Training& training) {
  const optim::Optimizer& optimizer = training.model.optimizer();
  const std::vector<optim::GroupInfo>& groups = optimizer.param_groups();
  ordered_json about{{"name", optimizer.impl()->name()},
                     {"lr", training.base_lr},
                     {"weight_decay", in_words(groups.front().weight_decay)}};
  for (const auto& [name, value] : optimizer.impl()->choices()) {
    about[name] = value;
  }
  if (groups.size() > 1) {
    for (const optim::GroupInfo& group : groups) {
      about["groups"].push_back({{"parameters", group.names.size()},
                                 {"lr", training.base_lr * group.lr_scale},
                                 {"weight_decay", in_words(group.weight_decay)}});
    }
  }
  return about;
}

void add_options(ordered_json& about, const FitOptions& options) {
  about["batch_size"] = options.batch_size;
  if (options.data.eval_batch_size.has_value()) {
    about["eval_batch_size"] = *options.data.eval_batch_size;
  }
  about["epochs"] = options.epochs;
  if (options.num_iters.has_value()) {
    about["num_iters"] = *options.num_iters;
  }
  about["accumulate_grad_batches"] = options.accumulate_grad_batches;
  about["shuffle"] = options.data.shuffle;
  about["drop_last"] = options.data.drop_last;
  about["num_workers"] = options.num_workers;
  about["seed"] = options.data.seed;
  about["eval_freq"] = options.eval_freq;
  about["log"]["freq"] = options.log.freq;
  ordered_json& checkpoint = about["checkpoint"];
  if (!options.checkpoint.dir.empty()) {
    checkpoint["dir"] = options.checkpoint.dir;
  }
  checkpoint["every_epochs"] = options.checkpoint.every_epochs;
  checkpoint["every_steps"] = options.checkpoint.every_steps;
  checkpoint["keep_last"] = options.checkpoint.keep_last;
}

/// Those of the strategy's fields that are not at their defaults.
ordered_json chosen_strategy() {
  const ordered_json defaults = ordered_json::parse(fleet::DistributedStrategy().to_json());
  ordered_json chosen = ordered_json::object();
  const ordered_json all = ordered_json::parse(fleet::strategy().to_json());
  for (const auto& [name, value] : all.items()) {
    if (!defaults.contains(name) || defaults.at(name) != value) {
      chosen[name] = value;
    }
  }
  return chosen;
}

ordered_json schedule_of(const Training& training) {
  ordered_json about{{"name", training.schedule},
                     {"parameters", training.schedule_parameters},
                     {"per", training.schedule_unit}};
  if (!training.monitor.empty()) {
    about["monitor"] = training.monitor;
  }
  return about;
}

}  // namespace

ordered_json description(const Training& training) {
  int64_t elements = 0;
  for (const auto& [name, parameter] : training.model.parameters()) {
    elements += parameter.numel();
  }
  ordered_json about{{"network", network_name(training.model.network())},
                     {"parameters", elements},
                     {"loss", training.loss},
                     {"metrics", training.metrics},
                     {"optimizer", optimizer_of(training)}};
  if (!training.loss_parameters.empty()) {
    about["loss_parameters"] = training.loss_parameters;
  }
  if (!training.schedule.empty()) {
    about["schedule"] = schedule_of(training);
  }
  if (!training.amp.empty()) {
    about["amp"] = training.amp;
  }
  if (!training.ema.empty()) {
    about["ema"] = training.ema;
  }
  if (const ordered_json strategy = chosen_strategy(); !strategy.empty()) {
    about["strategy"] = strategy;
  }
  about["torch_seed"] = at::detail::getDefaultCPUGenerator().current_seed();
  if (training.samples >= 0) {
    about["samples"] = training.samples;
  }
  if (training.options != nullptr) {
    add_options(about, *training.options);
    for (const auto& [name, value] : training.options->log.hyperparameters) {
      about["hyperparameters"][name] =
          secrets::is_secret(name) ? "(hidden)" : secrets::hidden(value);
    }
  }
  return about;
}

std::string markdown_cell(std::string_view text) {
  constexpr std::string_view kMarkup = "&<>|*_`~[]\\";
  std::string cell;
  for (const char c : text) {
    cell += kMarkup.find(c) != kMarkup.npos ? fmt::format("&#{};", int{c})
                                            : std::string(1, text::is_control(c) ? ' ' : c);
  }
  return cell;
}

std::string description_table(const Training& training) {
  std::string table = "| | |\n|---|---|\n";
  const ordered_json about = description(training);
  for (const auto& [name, value] : about.items()) {
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    table += fmt::format("| {} | {} |\n", name, markdown_cell(shown));
  }
  return table;
}

}  // namespace argosy::train::detail
