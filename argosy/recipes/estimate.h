#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "argosy/parallel/estimate.h"
#include "argosy/program/option.h"
#include "argosy/recipes/settings.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::recipes {

/// The settings of `argosy estimate`: those of `argosy train`, and what is asked of them. Without
/// data pictures have 10 classes and the model's usual size. Without a tokenizer published language
/// models have their own vocabulary, and others that of bytes.
struct EstimateSettings {
  TrainSettings training{.tokenizer = ""};
  int64_t hosts = 1;     ///< ranks of one host share memory
  bool measure = false;  ///< also train a few steps, and count
  bool json = false;     ///< numbers instead of a table
};

/// What estimate() has found.
struct EstimateResult {
  std::string model{};              ///< with all of its options
  std::string batch{};              ///< of a pass: "32 windows of 512 tokens"
  parallel::MemoryEstimate each{};  ///< of a process
  int ranks = 1;
  int64_t parameters = 0;  ///< numbers
  /// Whether what is kept for backward was counted in a step of one process, for want of a formula.
  bool counted_activations = false;
  /// With `measure`: bytes that libtorch's allocator and our own pools held at most in any process,
  /// between two steps and in a step.
  std::optional<int64_t> measured_kept{}, measured_most{};
};

/// Returns the options of the command. Their values go into `settings`. It knows all of `argosy
/// train`'s, and shows those that count.
[[nodiscard]] program::Options options_of(EstimateSettings& settings);

/// Says what each process will hold. With `measure` it trains four updates on made-up samples, and
/// is collective: run it under argosy launch with as many processes as the mesh has.
/// Errors: UsageError for names and numbers that do not fit, as of `argosy train`.
[[nodiscard]] EstimateResult estimate(const EstimateSettings& settings);

/// Returns a table of it, or its numbers by name, in bytes.
[[nodiscard]] std::string to_string(const EstimateResult& result);
[[nodiscard]] nlohmann::ordered_json to_json(const EstimateResult& result);

}  // namespace argosy::recipes
