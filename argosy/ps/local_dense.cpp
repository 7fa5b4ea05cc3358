#include "argosy/ps/local_dense.h"

#include <span>

namespace argosy::ps {

LocalDense::LocalDense(const ServedModel& model) : model_(model) {
  for (const DenseOptions& parameter : model.tables().dense) {
    std::vector<float>& state = state_.emplace_back();
    state.resize(parameter.rule->state_size(parameter.initial.size()));
    parameter.rule->begin(state);
  }
}

void LocalDense::update(const ServedModel::Gradients& gradients) {
  const std::vector<std::span<float>> values = model_.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const RowUpdate update{.weights = values[i].data(),
                           .state = state_[i].data(),
                           .gradient = gradients.gradients[i].data()};
    model_.tables().dense[i].rule->update({&update, 1}, values[i].size(), gradients.lr[i]);
  }
  model_.note_change();
}

}  // namespace argosy::ps
