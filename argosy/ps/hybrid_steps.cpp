#include "argosy/ps/hybrid_steps.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/comm/collectives.h"
#include "argosy/ps/pushed_steps.h"
#include "argosy/ps/table_files.h"

namespace argosy::ps {
namespace {

int64_t numbers_in(const TableSet& tables) {
  int64_t all = 0;
  for (const DenseOptions& parameter : tables.dense) {
    all += std::ssize(parameter.initial);
  }
  return all;
}

/// Copies the first worker's numbers into those of all others.
void share(std::span<float> numbers, const comm::Group& group) {
  if (!numbers.empty()) {
    comm::broadcast(at::from_blob(numbers.data(), {std::ssize(numbers)}, at::kFloat), group);
  }
}

}  // namespace

HybridSteps::HybridSteps(TableClient& client, const ServedModel& model, comm::Group group)
    : client_(client),
      model_(model),
      group_(std::move(group)),
      dense_(model),
      gradients_(at::zeros({numbers_in(model.tables())}, at::kFloat)) {}

void HybridSteps::begin(const std::string& checkpoint) {
  const std::vector<std::span<float>> values = model_.values();
  if (!checkpoint.empty()) {
    const TableFiles saved(checkpoint, model_.tables());
    for (size_t i = 0; i < values.size(); ++i) {
      DenseNumbers numbers = saved.dense(i);
      std::ranges::copy(numbers.weights, values[i].begin());
      dense_.state()[i] = std::move(numbers.state);
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    share(values[i], group_);
    share(dense_.state()[i], group_);
  }
  model_.note_change();
}

void HybridSteps::step() {
  ServedModel::Gradients dense = model_.gradients();
  float* const first = gradients_.data_ptr<float>();
  float* to = first;
  for (std::span<const float>& one : dense.gradients) {
    std::ranges::copy(one, to);
    one = {to, one.size()};
    to += one.size();
  }
  if (to == first) {
    client_.push(RowGradients(client_, model_).all());
    return;
  }
  comm::Work reduction = comm::all_reduce_async(gradients_, group_, {.op = comm::ReduceOp::kAvg});
  client_.push(RowGradients(client_, model_).all());
  reduction.wait();
  dense_.update(dense);
}

std::vector<SavedDense> HybridSteps::dense() {
  const std::vector<std::span<float>> values = model_.values();
  std::vector<SavedDense> all;
  for (size_t i = 0; i < values.size(); ++i) {
    all.push_back(
        {.number = i,
         .values = {.weights = {values[i].begin(), values[i].end()}, .state = dense_.state()[i]}});
  }
  return all;
}

}  // namespace argosy::ps
