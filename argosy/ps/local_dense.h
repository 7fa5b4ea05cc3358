#pragma once

#include <vector>

#include "argosy/ps/served_model.h"
#include "argosy/ps/tables.h"

namespace argosy::ps {

/// The parameters of a model that this worker updates by itself: by the rules that servers would
/// take, so with the same bits. Internal to the room.
class LocalDense final {
 public:
  /// Lifetime: the model stays.
  explicit LocalDense(const ServedModel& model);

  void update(const ServedModel::Gradients& gradients);
  /// Returns the rules' state, of each parameter.
  [[nodiscard]] std::vector<std::vector<float>>& state() { return state_; }

 private:
  const ServedModel& model_;
  std::vector<std::vector<float>> state_{};
};

}  // namespace argosy::ps
