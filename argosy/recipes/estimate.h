#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/parallel/estimate.h"
#include "argosy/program/option.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::recipes {

/// The settings of `argosy estimate`: names and numbers as `argosy train` takes them.
struct EstimateSettings {
  std::string model{};
  std::string mesh{};                        ///< "dp=2,sharding=2"; empty: one process
  int64_t sharding_stage = 3;                ///< of the mesh's axis "sharding"
  int64_t hosts = 1;                         ///< ranks of one host share memory
  int64_t batch_size = 1;                    ///< per process
  std::optional<int64_t> sequence_length{};  ///< of a language model; unset: its context
  std::optional<int64_t> image_size{};       ///< side of the pictures; unset: the model's
  std::string optimizer = "adamw";
  std::string amp = "off";       ///< "pure_bfloat16": parameters too, with f32 masters
  std::string offload_folder{};  ///< for the optimizer's state and masters; empty: in memory
  bool recompute = false;
  bool measure = false;  ///< also train a few steps, and count
  bool json = false;     ///< numbers instead of a table
};

/// What estimate() has found.
struct EstimateResult {
  parallel::MemoryEstimate each{};  ///< of a process
  int ranks = 1;
  int64_t parameters = 0;  ///< numbers
  /// Whether what is kept for backward was counted in a step of one process, for want of a formula.
  bool counted_activations = false;
  /// With `measure`: bytes that libtorch's allocator and our own pools held at most in any process,
  /// between two steps and in a step.
  std::optional<int64_t> measured_kept{}, measured_most{};
};

/// Returns the options of the command. Their values go into `settings`.
[[nodiscard]] program::Options options_of(EstimateSettings& settings);

/// Says what each process will hold. With `measure` it trains four steps on made-up samples, and is
/// collective: run it under argosy launch with as many processes as the mesh has.
/// Errors: UsageError for names and numbers that do not fit, as of `argosy train`.
[[nodiscard]] EstimateResult estimate(const EstimateSettings& settings);

/// Returns a table of it, or its numbers by name, in bytes.
[[nodiscard]] std::string to_string(const EstimateResult& result);
[[nodiscard]] nlohmann::ordered_json to_json(const EstimateResult& result);

}  // namespace argosy::recipes
