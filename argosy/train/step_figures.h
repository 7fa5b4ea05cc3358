#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/train/core.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// The means of the values that TrainingStep::log() got since the start of the epoch, by name.
class StepFigures final {
 public:
  /// Adds a mean over `count` samples of this rank.
  void add(std::string_view name, double mean, double count);

  /// Returns the means over all ranks: those of rank 0 in its order, then those that only others
  /// have. Collective.
  [[nodiscard]] Logs compute(const comm::Group& group) const;

  /// This rank's sums for a checkpoint.
  [[nodiscard]] nlohmann::ordered_json state() const;
  /// Adds the sums of a state.
  void merge_state(const nlohmann::ordered_json& state);

 private:
  [[nodiscard]] LossMean& mean_of(std::string_view name);

  std::vector<std::pair<std::string, LossMean>> means_;
};

/// The sums of an epoch so far on this rank, apart from the metrics.
struct EpochFigures {
  LossMean loss{};
  StepFigures logged{};
};

}  // namespace argosy::train::detail
