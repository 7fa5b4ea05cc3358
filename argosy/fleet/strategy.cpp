#include "argosy/fleet/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/comm/collectives.h"

#include <nlohmann/json.hpp>

namespace argosy::fleet {

static_assert(kMostVirtualRanks == comm::LeafDeal::kMostLeaves);

namespace {

using S = DistributedStrategy;

/// A toggle that cannot be switched on yet.
struct Unsupported {
  const char* name;
  bool S::*field;
  const char* instead = "nothing does it yet";
};

constexpr Unsupported kUnsupported[] = {
    {"pipeline", &S::pipeline},
    {"tensor_parallel", &S::tensor_parallel},
    {"use_hierarchical_allreduce",
     &S::use_hierarchical_allreduce,
     "ranks of several hosts always reduce inside each host first"},
    {"elastic", &S::elastic, "argosy launch --max_restarts and checkpoints come nearest"},
    {"auto_search", &S::auto_search},
    {"asp", &S::asp},
    {"qat", &S::qat},
    {"heter_ccl_mode", &S::heter_ccl_mode},
};
/// Paddle's axes.
constexpr std::array kAxes = {"dp", "pp", "sharding", "sep", "mp"};

[[noreturn]] void refuse(const std::string& text) {
  throw ConfigError("fleet.DistributedStrategy", text);
}

std::string unknown(const std::string& kind,
                    const std::string& key,
                    const std::vector<std::string>& known) {
  const std::optional<std::string> near = strings::closest(key, known);
  return fmt::format("there is no {} \"{}\"{}",
                     kind,
                     key,
                     near ? fmt::format(". Did you mean \"{}\"?", *near)
                          : fmt::format("; known are: {}", fmt::join(known, ", ")));
}

/// Calls `visit` with the name and the value of each field.
template <typename Visit>
void for_each_field(LarsConfigs& configs, const Visit& visit) {
  visit("lars_coeff", configs.lars_coeff);
  visit("lars_weight_decay", configs.lars_weight_decay);
  visit("epsilon", configs.epsilon);
  visit("exclude_from_weight_decay", configs.exclude_from_weight_decay);
}
template <typename Visit>
void for_each_field(LambConfigs& configs, const Visit& visit) {
  visit("lamb_weight_decay", configs.lamb_weight_decay);
  visit("exclude_from_weight_decay", configs.exclude_from_weight_decay);
}
template <typename Visit>
void for_each_field(GradientMergeConfigs& configs, const Visit& visit) {
  visit("k_steps", configs.k_steps);
  visit("avg", configs.avg);
  visit("order", configs.order);
}
template <typename Visit>
void for_each_field(ShardingConfigs& configs, const Visit& visit) {
  visit("stage", configs.stage);
  visit("units", configs.units);
  visit("unit_bytes", configs.unit_bytes);
  visit("reshard_after_forward", configs.reshard_after_forward);
  visit("offload_folder", configs.offload_folder);
}
template <typename Visit>
void for_each_field(RecomputeConfigs& configs, const Visit& visit) {
  visit("checkpoints", configs.checkpoints);
  visit("enable_offload", configs.enable_offload);
  visit("checkpoint_shape", configs.checkpoint_shape);
}
template <typename Visit>
void for_each_field(AmpConfigs& configs, const Visit& visit) {
  visit("dtype", configs.dtype);
  visit("init_loss_scaling", configs.init_loss_scaling);
  visit("incr_every_n_steps", configs.incr_every_n_steps);
  visit("incr_ratio", configs.incr_ratio);
  visit("decr_ratio", configs.decr_ratio);
  visit("decr_every_n_nan_or_inf", configs.decr_every_n_nan_or_inf);
  visit("use_dynamic_loss_scaling", configs.use_dynamic_loss_scaling);
  visit("custom_white_list", configs.custom_white_list);
  visit("custom_black_list", configs.custom_black_list);
  visit("custom_black_varnames", configs.custom_black_varnames);
  visit("use_pure_fp16", configs.use_pure_fp16);
  visit("use_pure_bf16", configs.use_pure_bf16);
  visit("master_grad", configs.master_grad);
  visit("use_fp16_guard", configs.use_fp16_guard);
  visit("use_optimizer_fp16", configs.use_optimizer_fp16);
}
template <typename Visit>
void for_each_field(parallel::LocalSgdOptions& configs, const Visit& visit) {
  visit("k_steps", configs.k_steps);
  visit("begin_step", configs.begin_step);
}
template <typename Visit>
void for_each_field(parallel::AdaptiveLocalSgdOptions& configs, const Visit& visit) {
  visit("init_k_steps", configs.init_k_steps);
  visit("begin_step", configs.begin_step);
}
template <typename Visit>
void for_each_field(parallel::DgcOptions& configs, const Visit& visit) {
  visit("rampup_begin_step", configs.rampup_begin_step);
  visit("rampup_step", configs.rampup_step);
  visit("sparsity", configs.sparsity);
  visit("min_elements", configs.min_elements);
}
template <typename Visit>
void for_each_field(parallel::PowerSgdOptions& configs, const Visit& visit) {
  visit("matrix_approximation_rank", configs.matrix_approximation_rank);
  visit("start_power_sgd_iter", configs.start_power_sgd_iter);
  visit("min_compression_rate", configs.min_compression_rate);
  visit("use_error_feedback", configs.use_error_feedback);
  visit("warm_start", configs.warm_start);
  visit("random_seed", configs.random_seed);
}
template <typename Visit>
void for_each_field(parallel::DilocoOptions& configs, const Visit& visit) {
  visit("sync_every", configs.sync_every);
  visit("outer_lr", configs.outer_lr);
  visit("outer_momentum", configs.outer_momentum);
  visit("outer_nesterov", configs.outer_nesterov);
  visit("fragments", configs.fragments);
  visit("fragment_sync_delay", configs.fragment_sync_delay);
  visit("fragment_update_alpha", configs.fragment_update_alpha);
  visit("bits", configs.bits);
}
template <typename Visit>
void for_each_field(S& strategy, const Visit& visit) {
  visit("find_unused_parameters", strategy.find_unused_parameters);
  visit("fuse_grad_size_in_MB", strategy.fuse_grad_size_in_MB);
  visit("last_comm_group_size_MB", strategy.last_comm_group_size_MB);
  visit("fp16_allreduce", strategy.fp16_allreduce);
  visit("bf16_allreduce", strategy.bf16_allreduce);
  visit("divide_update", strategy.divide_update);
  visit("share_parameters", strategy.share_parameters);
  visit("overlap_update", strategy.overlap_update);
  visit("scatter_gradients", strategy.scatter_gradients);
  visit("virtual_ranks", strategy.virtual_ranks);
  visit("check_drift", strategy.check_drift);
  visit("on_nonfinite", strategy.on_nonfinite);
  visit("sync_batch_norm", strategy.sync_batch_norm);
  visit("memory_format", strategy.memory_format);
  visit("lars", strategy.lars);
  visit("lars_configs", strategy.lars_configs);
  visit("lamb", strategy.lamb);
  visit("lamb_configs", strategy.lamb_configs);
  visit("gradient_merge", strategy.gradient_merge);
  visit("gradient_merge_configs", strategy.gradient_merge_configs);
  visit("amp", strategy.amp);
  visit("amp_configs", strategy.amp_configs);
  visit("recompute", strategy.recompute);
  visit("recompute_configs", strategy.recompute_configs);
  visit("hybrid_configs", strategy.hybrid_configs);
  visit("hybrid_order", strategy.hybrid_order);
  visit("sharding", strategy.sharding);
  visit("sharding_configs", strategy.sharding_configs);
  visit("localsgd", strategy.localsgd);
  visit("localsgd_configs", strategy.localsgd_configs);
  visit("adaptive_localsgd", strategy.adaptive_localsgd);
  visit("adaptive_localsgd_configs", strategy.adaptive_localsgd_configs);
  visit("dgc", strategy.dgc);
  visit("dgc_configs", strategy.dgc_configs);
  visit("power_sgd", strategy.power_sgd);
  visit("power_sgd_configs", strategy.power_sgd_configs);
  visit("diloco", strategy.diloco);
  visit("diloco_configs", strategy.diloco_configs);
  for (const Unsupported& toggle : kUnsupported) {
    visit(toggle.name, strategy.*toggle.field);
  }
}

// How a field of each type is read from JSON. `where` is its name.

void expect(bool fits, const char* what, const std::string& where, const nlohmann::json& got) {
  if (!fits) {
    refuse(fmt::format("{}: expected {}, got {}", where, what, got.dump()));
  }
}

void read(const std::string& where, const nlohmann::json& value, double& field) {
  expect(value.is_number(), "a number", where, value);
  field = value.get<double>();
}
void read(const std::string& where, const nlohmann::json& value, int64_t& field) {
  expect(value.is_number_integer(), "a whole number", where, value);
  field = value.get<int64_t>();
}
void read(const std::string& where, const nlohmann::json& value, bool& field) {
  expect(value.is_boolean(), "true or false", where, value);
  field = value.get<bool>();
}
void read(const std::string& where, const nlohmann::json& value, std::string& field) {
  expect(value.is_string(), "a text", where, value);
  field = value.get<std::string>();
}
void read(const std::string& where, const nlohmann::json& value, std::vector<int64_t>& field) {
  const auto is_whole = [](const nlohmann::json& each) { return each.is_number_integer(); };
  expect(value.is_array() && std::all_of(value.begin(), value.end(), is_whole),
         "a list of whole numbers",
         where,
         value);
  field = value.get<std::vector<int64_t>>();
}
void read(const std::string& where, const nlohmann::json& value, std::vector<double>& field) {
  const auto is_number = [](const nlohmann::json& each) { return each.is_number(); };
  expect(value.is_array() && std::all_of(value.begin(), value.end(), is_number),
         "a list of numbers",
         where,
         value);
  field = value.get<std::vector<double>>();
}
void read(const std::string& where, const nlohmann::json& value, std::vector<std::string>& field) {
  const auto is_text = [](const nlohmann::json& each) { return each.is_string(); };
  expect(value.is_array() && std::all_of(value.begin(), value.end(), is_text),
         "a list of texts",
         where,
         value);
  field = value.get<std::vector<std::string>>();
}
void read(const std::string& where, const nlohmann::json& value, engine::MemoryFormat& field) {
  const std::optional<engine::MemoryFormat> format =
      value.is_string() ? engine::memory_format(value.get<std::string>()) : std::nullopt;
  expect(format.has_value(), R"("auto", "as_is", "contiguous" or "channels_last")", where, value);
  field = *format;
}
void read(const std::string& where,
          const nlohmann::json& value,
          std::map<std::string, int64_t>& field) {
  expect(value.is_object(), R"(an object such as {"dp_degree": 2})", where, value);
  for (const auto& [key, number] : value.items()) {
    read(fmt::format("{}.{}", where, key), number, field[key]);
  }
}

/// Reads an object with these fields. `where` is empty for the strategy itself.
template <typename Fields>
void read(const std::string& where, const nlohmann::json& value, Fields& fields) {
  expect(value.is_object(), "an object", where, value);
  std::vector<std::string> known;
  for_each_field(fields, [&](const char* name, auto& field) {
    known.emplace_back(name);
    if (value.contains(name)) {
      read(where.empty() ? name : fmt::format("{}.{}", where, name), value.at(name), field);
    }
  });
  for (const auto& [name, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse(unknown(where.empty() ? "toggle" : "field of " + where, name, known));
    }
  }
}

template <typename Field>
nlohmann::ordered_json written(Field& field) {
  if constexpr (std::is_same_v<Field, engine::MemoryFormat>) {
    return engine::to_string(field);
  } else if constexpr (std::is_constructible_v<nlohmann::ordered_json, Field&>) {
    return field;
  } else {
    nlohmann::ordered_json json;
    for_each_field(field, [&](const char* name, auto& each) { json[name] = written(each); });
    return json;
  }
}

[[noreturn]] void refuse_unsupported(std::string_view name,
                                     std::string_view allowed,
                                     std::string_view instead) {
  refuse(fmt::format("{} is not supported. Leave it {}: {}. See {}",
                     name,
                     allowed,
                     instead,
                     docs_page("docs/reference/coming_from_paddle.md#distributedstrategy")));
}

/// 16-bit parameters with f32 masters.
void check_pure(const S& strategy) {
  const AmpConfigs& given = strategy.amp_configs;
  if (given.use_pure_fp16 && given.use_pure_bf16) {
    refuse("amp_configs: use_pure_fp16 and use_pure_bf16 exclude each other. Choose one.");
  }
  if (!strategy.amp || !strategy.shards() || strategy.sharding_configs.stage != 3) {
    refuse(
        "amp_configs.use_pure_bf16 (or use_pure_fp16) needs amp = true and sharding of stage 3, "
        "where masters are divided among the ranks. To keep all values on each rank, give "
        "sharding = true and hybrid_configs {\"sharding\": 1}.");
  }
}

void check_recompute(const S& strategy) {
  const RecomputeConfigs& given = strategy.recompute_configs;
  if (given.enable_offload) {
    refuse_unsupported(
        "recompute_configs.enable_offload", "false", "arguments of blocks stay in memory");
  }
  if (!given.checkpoint_shape.empty()) {
    refuse_unsupported("recompute_configs.checkpoint_shape", "empty", "nothing is offloaded");
  }
  if (!strategy.recompute && !given.checkpoints.empty()) {
    refuse("recompute_configs.checkpoints has names, and recompute is off. Set recompute = true.");
  }
}

/// Errors: ConfigError for a setting that nothing stands behind, and for a number out of range.
void check_amp(const S& strategy) {
  const AmpConfigs& given = strategy.amp_configs;
  const auto only = [](bool so, const char* name, const char* allowed, const char* instead) {
    if (!so) {
      refuse_unsupported(std::string("amp_configs.") + name, allowed, instead);
    }
  };
  only(given.decr_every_n_nan_or_inf == 1,
       "decr_every_n_nan_or_inf",
       "1",
       "each update that is not finite lowers the scale");
  only(given.use_dynamic_loss_scaling,
       "use_dynamic_loss_scaling",
       "true",
       "scaler.update(scaler.get_scale()) instead of scaler.update() keeps the scale");
  constexpr const char* kLists =
      "the lists of operators are libtorch's, and engine::Autocast({.enabled = false}) inside of "
      "forward computes a part of it in f32";
  only(given.custom_white_list.empty(), "custom_white_list", "empty", kLists);
  only(given.custom_black_list.empty(), "custom_black_list", "empty", kLists);
  only(given.custom_black_varnames.empty(), "custom_black_varnames", "empty", kLists);
  constexpr const char* kPure = "masters and the optimizer's state stay f32";
  only(given.use_fp16_guard, "use_fp16_guard", "true", kPure);
  only(!given.use_optimizer_fp16, "use_optimizer_fp16", "false", kPure);

  const auto require = [](bool so, const char* name, const char* range, auto got) {
    if (!so) {
      refuse(fmt::format("amp_configs.{}: expected {}, got {}", name, range, got));
    }
  };
  const double scale = given.init_loss_scaling;
  require(std::isfinite(static_cast<float>(scale)) && static_cast<float>(scale) > 0,
          "init_loss_scaling",
          "a positive number, finite in f32",
          scale);
  require(
      given.incr_every_n_steps >= 1, "incr_every_n_steps", "at least 1", given.incr_every_n_steps);
  require(given.incr_ratio > 1 && std::isfinite(given.incr_ratio),
          "incr_ratio",
          "more than 1",
          given.incr_ratio);
  require(given.decr_ratio > 0 && given.decr_ratio < 1,
          "decr_ratio",
          "a number between 0 and 1",
          given.decr_ratio);
  require(given.dtype == "bfloat16" || given.dtype == "float16",
          "dtype",
          R"("bfloat16" or "float16")",
          "\"" + given.dtype + "\"");
  if (given.use_pure_fp16 || given.use_pure_bf16) {
    check_pure(strategy);
  } else if (given.master_grad) {
    refuse(
        "amp_configs.master_grad is for use_pure_bf16 and use_pure_fp16: without them gradients "
        "are f32. Leave it false.");
  }
  if (strategy.amp && given.dtype == "float16" &&
      (strategy.overlap_update || strategy.gradient_merge)) {
    refuse(
        "amp in float16 excludes overlap_update and gradient_merge: it needs a scaler of the loss, "
        "which acts between backward and step.");
  }
}

void check_axes(const S& strategy) {
  std::vector<std::string> known;
  for (const char* const axis : kAxes) {
    known.emplace_back(axis);
    known.push_back(std::string(axis) + "_degree");
    if (strategy.hybrid_configs.contains(known[known.size() - 2]) &&
        strategy.hybrid_configs.contains(known.back())) {
      refuse(fmt::format("hybrid_configs has {0} and {0}_degree, which are the same. Give one.",
                         axis));
    }
  }
  std::string open;  // the axis of -1
  for (const auto& [name, degree] : strategy.hybrid_configs) {
    if (std::ranges::find(known, name) == known.end()) {
      refuse(unknown("axis of hybrid_configs", name, known));
    }
    const bool divides = name.starts_with("dp") || name.starts_with("sharding");
    if (!divides && degree != 1) {
      refuse_unsupported(fmt::format("hybrid_configs.{} = {}", name, degree),
                         "1",
                         "dp and sharding are the axes that there are yet");
    }
    if (degree != -1 && degree < 1) {
      refuse(
          fmt::format("hybrid_configs.{}: expected a number of ranks, or -1 for what the other "
                      "axes leave, got {}",
                      name,
                      degree));
    }
    if (degree == -1 && !std::exchange(open, name).empty()) {
      refuse("hybrid_configs: only one axis can be -1, for what the others leave");
    }
  }
  std::vector<std::string> order = strategy.hybrid_order;
  std::vector<std::string> axes(kAxes.begin(), kAxes.end());
  std::ranges::sort(order);
  std::ranges::sort(axes);
  if (order != axes) {
    refuse(fmt::format("hybrid_order: expected each of {} once, got {}",
                       fmt::join(kAxes, ", "),
                       fmt::join(strategy.hybrid_order, ", ")));
  }
}

void check_sharding(const S& strategy) {
  const ShardingConfigs& given = strategy.sharding_configs;
  if (given.stage < 1 || given.stage > 3) {
    refuse(fmt::format("sharding_configs.stage: expected 1, 2 or 3, got {}", given.stage));
  }
  if (given.unit_bytes < 0) {
    refuse(
        fmt::format("sharding_configs.unit_bytes: expected 0 or more, got {}", given.unit_bytes));
  }
  if (!given.offload_folder.empty() && !(strategy.shards() && given.stage == 3)) {
    refuse("sharding_configs.offload_folder is for sharding of stage 3. Leave it empty.");
  }
  if (!strategy.shards()) {
    return;
  }
  for (const auto& [name, on] : {std::pair("share_parameters", strategy.share_parameters),
                                 std::pair("overlap_update", strategy.overlap_update),
                                 std::pair("fp16_allreduce", strategy.fp16_allreduce),
                                 std::pair("bf16_allreduce", strategy.bf16_allreduce)}) {
    if (on) {
      refuse(fmt::format("sharding excludes {}. Leave one of them out.", name));
    }
  }
  if (!strategy.divide_update) {
    refuse("sharding divides the update, and divide_update is off. Leave one of them out.");
  }
}

/// The toggles that save traffic by a state of their own, and those that are on.
std::vector<std::pair<const char*, bool>> ways_to_save(const S& strategy) {
  return {{"localsgd", strategy.localsgd},
          {"adaptive_localsgd", strategy.adaptive_localsgd},
          {"dgc", strategy.dgc},
          {"power_sgd", strategy.power_sgd},
          {"diloco", strategy.diloco}};
}

/// The options name their field; here it stands in a field of the strategy.
template <typename Options>
void check_configs(const char* name, const Options& options) {
  try {
    options.validate();
  } catch (const UsageError& error) {
    const std::string what = error.what();  // "[where] field: expected …"
    refuse(fmt::format("{}.{}", name, what.substr(what.find(' ') + 1)));
  }
}

void check_traffic(const S& strategy) {
  check_configs("localsgd_configs", strategy.localsgd_configs);
  check_configs("adaptive_localsgd_configs", strategy.adaptive_localsgd_configs);
  check_configs("dgc_configs", strategy.dgc_configs);
  check_configs("power_sgd_configs", strategy.power_sgd_configs);
  check_configs("diloco_configs", strategy.diloco_configs);
  const std::string way = strategy.saves_traffic_by();
  if (way.empty()) {
    return;
  }
  for (const auto& [name, on] : ways_to_save(strategy)) {
    if (on && name != way) {
      refuse(fmt::format("{} and {} exclude each other. Choose one.", way, name));
    }
  }
  const bool compresses = !strategy.trains_apart();
  const bool scales = strategy.amp && strategy.amp_configs.dtype == "float16";
  for (const auto& [name, on] :
       {std::pair("sharding", strategy.shards()),
        std::pair("share_parameters", strategy.share_parameters),
        std::pair("overlap_update", strategy.overlap_update),
        std::pair("scatter_gradients", strategy.scatter_gradients),
        std::pair("gradient_merge", strategy.gradient_merge),
        std::pair("fp16_allreduce", strategy.fp16_allreduce),
        std::pair("bf16_allreduce", strategy.bf16_allreduce),
        std::pair("amp in float16", scales),
        std::pair("find_unused_parameters", compresses && strategy.find_unused_parameters)}) {
    if (on) {
      refuse(fmt::format("{} excludes {}. Leave one of them out.", way, name));
    }
  }
}

}  // namespace

std::string DistributedStrategy::saves_traffic_by() const {
  for (const auto& [name, on] : ways_to_save(*this)) {
    if (on) {
      return name;
    }
  }
  return {};
}

bool DistributedStrategy::shards() const {
  const auto found = std::ranges::find_if(hybrid_configs, [](const auto& each) {
    return each.first.starts_with("sharding") && each.second != 1;
  });
  return sharding || found != hybrid_configs.end();
}

void DistributedStrategy::validate() const {
  for (const Unsupported& toggle : kUnsupported) {
    if (this->*toggle.field) {
      refuse_unsupported(toggle.name, "false", toggle.instead);
    }
  }
  check_amp(*this);
  check_recompute(*this);
  for (const auto& [name, megabytes] :
       {std::pair("fuse_grad_size_in_MB", fuse_grad_size_in_MB),
        std::pair("last_comm_group_size_MB", last_comm_group_size_MB)}) {
    if (!std::isfinite(megabytes) || megabytes <= 0 || megabytes > 1e6) {
      refuse(fmt::format("{}: expected megabytes above 0, got {}", name, megabytes));
    }
  }
  if (fp16_allreduce && bf16_allreduce) {
    refuse("fp16_allreduce and bf16_allreduce exclude each other. Choose one.");
  }
  if ((share_parameters || overlap_update || scatter_gradients) && !divide_update) {
    refuse(
        "share_parameters, overlap_update and scatter_gradients are ways of divide_update, which "
        "is off.");
  }
  if (scatter_gradients && (share_parameters || overlap_update)) {
    refuse(
        "scatter_gradients excludes share_parameters and overlap_update, which are for ranks that "
        "share memory.");
  }
  if (overlap_update && (find_unused_parameters || fp16_allreduce || bf16_allreduce)) {
    refuse(
        "overlap_update excludes find_unused_parameters, fp16_allreduce and bf16_allreduce: "
        "gradients "
        "are final only at the end of backward.");
  }
  if (overlap_update && on_nonfinite == "stop") {
    refuse(
        "overlap_update and on_nonfinite = stop exclude each other: weights may be updated before "
        "a "
        "gradient is found that is not finite.");
  }
  if (overlap_update && gradient_merge) {
    refuse(
        "overlap_update and gradient_merge exclude each other: an update would be made before its "
        "gradients are merged.");
  }
  if (on_nonfinite != "warn" && on_nonfinite != "stop" && on_nonfinite != "ignore") {
    refuse(fmt::format(R"(on_nonfinite: expected "warn", "stop" or "ignore", got "{}")",
                       on_nonfinite));
  }
  if (virtual_ranks < 0 || virtual_ranks > kMostVirtualRanks) {
    refuse(
        fmt::format("virtual_ranks: expected 0 to {}, got {}", kMostVirtualRanks, virtual_ranks));
  }
  if (virtual_ranks > 0 && gradient_merge) {
    refuse(
        "virtual_ranks and gradient_merge exclude each other: give distributed_batch_sampler() "
        ".micro_batches, and loop over fleet::updates().");
  }
  if (lars && lamb) {
    refuse("lars and lamb exclude each other. Choose one.");
  }
  if (gradient_merge_configs.k_steps < 1) {
    refuse(fmt::format("gradient_merge_configs.k_steps: expected at least 1, got {}",
                       gradient_merge_configs.k_steps));
  }
  if (gradient_merge_configs.order != "local" && gradient_merge_configs.order != "reduced") {
    refuse(
        fmt::format("gradient_merge_configs.order: expected \"local\" or \"reduced\", got \"{}\"",
                    gradient_merge_configs.order));
  }
  check_axes(*this);
  check_sharding(*this);
  check_traffic(*this);
  for (const std::string& idle : idle_configs()) {
    if (idle == "power_sgd_configs" || idle == "diloco_configs") {  // not Paddle's
      const std::string toggle = idle.substr(0, idle.find("_configs"));
      refuse(fmt::format("{} says something, and {} is off: switch that on too, or leave both out.",
                         idle,
                         toggle));
    }
  }
}

DistributedStrategy DistributedStrategy::from_json(const std::string& text) {
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) {
    refuse("expected a JSON object such as {\"find_unused_parameters\": true}, got: " + text);
  }
  DistributedStrategy strategy;
  read("", parsed, strategy);
  strategy.validate();
  return strategy;
}

std::string DistributedStrategy::to_json() const {
  S copy = *this;
  return written(copy).dump();
}

std::vector<std::string> DistributedStrategy::idle_configs() const {
  constexpr std::string_view kEnd = "_configs";
  S own = *this;
  S plain;
  const nlohmann::ordered_json defaults = written(plain);
  const nlohmann::ordered_json given = written(own);
  std::vector<std::string> idle;
  for (const auto& [name, value] : given.items()) {
    const std::string toggle =
        name.ends_with(kEnd) ? name.substr(0, name.size() - kEnd.size()) : "";
    if (given.contains(toggle) && given[toggle] == false && value != defaults[name] &&
        !(toggle == "sharding" && shards())) {
      idle.push_back(name);
    }
  }
  return idle;
}

}  // namespace argosy::fleet
