#include "argosy/recipes/traffic.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/error.h"
#include "argosy/parallel/traffic/deep_gradient_compression.h"
#include "argosy/parallel/traffic/local_sgd.h"

namespace argosy::recipes {
namespace {

using Strategy = fleet::DistributedStrategy;

TrafficEntry localsgd() {
  return {
      .row = {"localsgd",
              "averages weights of sgd or momentum every k steps",
              {{"k_steps", "1", "updates between two averages; 1 is Paddle's, and saves nothing"},
               {"begin_step", "1", "the last update whose gradients are averaged"}}},
      .use =
          [](const Values& values, Strategy& strategy) {
            strategy.localsgd = true;
            strategy.localsgd_configs = {.k_steps = values.whole("k_steps"),
                                         .begin_step = values.whole("begin_step")};
          },
      .check = parallel::LocalSgd::check_optimizer};
}

TrafficEntry adaptive_localsgd() {
  return {.row = {"adaptive_localsgd",
                  "the same, with as many steps as the loss says, up to 16",
                  {{"init_k_steps", "1", "updates between the first two averages"},
                   {"begin_step", "1", "the last update whose gradients are averaged"}}},
          .use =
              [](const Values& values, Strategy& strategy) {
                strategy.adaptive_localsgd = true;
                strategy.adaptive_localsgd_configs = {.init_k_steps = values.whole("init_k_steps"),
                                                      .begin_step = values.whole("begin_step")};
              },
          .check = parallel::LocalSgd::check_optimizer};
}

TrafficEntry dgc() {
  return {.row = {"dgc",
                  "sends the largest elements of momentum's gradients",
                  {{"rampup_begin_step", "0", "updates before it begins"},
                   {"rampup_step", "1", "updates over which the sparsities are taken in turns"},
                   {"sparsity", "0.999", "shares that are not sent, by \"/\""},
                   {"min_elements", "16384", "of a parameter; smaller ones are sent whole"}}},
          .use =
              [](const Values& values, Strategy& strategy) {
                strategy.dgc = true;
                strategy.dgc_configs = {.rampup_begin_step = values.whole("rampup_begin_step"),
                                        .rampup_step = values.whole("rampup_step"),
                                        .sparsity = values.numbers("sparsity"),
                                        .min_elements = values.whole("min_elements")};
              },
          .check = parallel::DeepGradientCompression::check_optimizer};
}

TrafficEntry power_sgd() {
  return {.row = {"power_sgd",
                  "gradients as products of thin matrices",
                  {{"rank", "1", "of the matrices"},
                   {"start", "1000", "updates before it begins"},
                   {"min_rate", "2", "gradients that would shrink by less stay as they are"}}},
          .use = [](const Values& values, Strategy& strategy) {
            strategy.power_sgd = true;
            strategy.power_sgd_configs = {.matrix_approximation_rank = values.whole("rank"),
                                          .start_power_sgd_iter = values.whole("start"),
                                          .min_compression_rate = values.number("min_rate")};
          }};
}

TrafficEntry diloco() {
  return {.row = {"diloco",
                  "trains processes apart, and steps by the mean of their ways",
                  {{"sync_every", "500", "updates between two sums of the same weights"},
                   {"outer_lr", "0.7", "of the outer SGD"},
                   {"outer_momentum", "0.9", "of the outer SGD, with nesterov"},
                   {"fragments", "1", "parts of the weights that are summed in turns"},
                   {"delay", "0", "updates that go on while a part is summed"},
                   {"alpha", "0", "share of a process's own weights in the new ones"},
                   {"bits", "32", "of a number on the wire: 32, 8, 4"}}},
          .use = [](const Values& values, Strategy& strategy) {
            strategy.diloco = true;
            strategy.diloco_configs = {.sync_every = values.whole("sync_every"),
                                       .outer_lr = values.number("outer_lr"),
                                       .outer_momentum = values.number("outer_momentum"),
                                       .fragments = values.whole("fragments"),
                                       .fragment_sync_delay = values.whole("delay"),
                                       .fragment_update_alpha = values.number("alpha"),
                                       .bits = values.whole("bits")};
          }};
}

}  // namespace

const std::vector<TrafficEntry>& traffic_ways() {
  static const std::vector<TrafficEntry> all{
      {.row = {"none", "each update averages all gradients as they are", {}},
       .use = [](const Values&, Strategy&) {}},
      {.row = {"fp16_allreduce", "gradients as 16-bit floats: half of the traffic", {}},
       .use = [](const Values&, Strategy& strategy) { strategy.fp16_allreduce = true; }},
      {.row = {"bf16_allreduce", "the same in bfloat16, with the range of f32", {}},
       .use = [](const Values&, Strategy& strategy) { strategy.bf16_allreduce = true; }},
      localsgd(),
      adaptive_localsgd(),
      dgc(),
      power_sgd(),
      diloco()};
  return all;
}

void use_traffic(const std::string& text, fleet::DistributedStrategy& strategy) {
  const Spec spec = parse_spec(kTraffic, text);
  const TrafficEntry& entry = find_entry(kTraffic, traffic_ways(), spec.name);
  entry.use(Values(kTraffic, entry.row, spec.options), strategy);
  try {
    strategy.validate();
  } catch (const ConfigError& error) {  // names the strategy's field
    throw UsageError(kTraffic.where, fmt::format("--traffic {}: {}", text, error.what()));
  }
}

void check_traffic(const std::string& text, const optim::Optimizer& optimizer) {
  const TrafficEntry& entry = find_entry(kTraffic, traffic_ways(), parse_spec(kTraffic, text).name);
  if (entry.check) {
    entry.check(*optimizer.impl());
  }
}

}  // namespace argosy::recipes
