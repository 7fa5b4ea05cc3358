#include "argosy/ps/served_model.h"

#include <algorithm>
#include <string>

#include <ATen/Functions.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/comm/buffer.h"
#include "argosy/ps/embedding.h"
#include "argosy/ps/optimizer_rule.h"

namespace argosy::ps {
namespace {

/// Calls `visit` for each embedding in the model, with the name of its table.
template <typename Visit>
void for_each_embedding(torch::nn::Module& model, Visit visit) {
  const auto look_at = [&](torch::nn::Module& module, const std::string& name) {
    if (auto* const embedding = dynamic_cast<EmbeddingImpl*>(&module)) {
      visit(*embedding, embedding->options().table.empty() ? name : embedding->options().table);
    }
  };
  look_at(model, "embedding");
  // Not with itself, which may lie on the stack.
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    look_at(*item.value(), item.key());
  }
}

std::span<float> memory_of(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<size_t>(tensor.numel())};
}

void check_parameter(const std::string& name, const at::Tensor& parameter) {
  ARGOSY_CHECK(
      parameter.is_cpu() && parameter.scalar_type() == at::kFloat && parameter.is_contiguous(),
      "ps.training",
      "{}: parameters on servers are contiguous, of f32 and on the CPU, got {} on {}",
      name,
      comm::dtype_name(parameter),
      parameter.device().str());
}

std::vector<size_t> groups_of(const optim::Optimizer& optimizer) {
  std::vector<size_t> groups;
  for (const auto& [name, parameter] : optimizer.parameters()) {
    for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
      if (std::ranges::count(optimizer.param_groups()[g].names, name) > 0) {
        groups.push_back(g);
        break;
      }
    }
  }
  return groups;
}

TableSet dense_tables(const optim::Optimizer& optimizer) {
  const std::vector<std::shared_ptr<const RowRule>> rules = rules_of(optimizer);
  TableSet tables;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto& [name, parameter] = optimizer.parameters()[i];
    check_parameter(name, parameter);
    const std::span<const float> values = memory_of(parameter);
    tables.dense.push_back({.name = name,
                            .initial = {values.begin(), values.end()},
                            .shape = parameter.sizes().vec(),
                            .rule = rules[i]});
  }
  return tables;
}

}  // namespace

ServedModel::ServedModel(torch::nn::Module& model, const optim::Optimizer& optimizer)
    : optimizer_(optimizer), tables_(dense_tables(optimizer)), groups_(groups_of(optimizer)) {
  for_each_embedding(model, [&](EmbeddingImpl& embedding, const std::string& table) {
    add_table(embedding, table);
    embeddings_.emplace_back(&embedding, tables_.index_of(table));
  });
}

ServedModel::~ServedModel() {
  for (const auto& [embedding, table] : embeddings_) {
    if (!rows_.empty()) {
      embedding->bind(nullptr);
    }
  }
}

/// Without a rule of its own it has that of the optimizer's first parameter.
void ServedModel::add_table(EmbeddingImpl& embedding, const std::string& table) {
  const EmbeddingOptions& given = embedding.options();
  const auto dim = static_cast<size_t>(given.dim);
  const auto there = std::ranges::find(tables_.sparse, table, &SparseOptions::name);
  if (there != tables_.sparse.end()) {
    ARGOSY_CHECK(there->dim == dim,
                 "ps.training",
                 "two embeddings share the table \"{}\", of {} and {} weights a row",
                 table,
                 there->dim,
                 dim);
    return;
  }
  ARGOSY_CHECK(given.rule != nullptr || !tables_.dense.empty(),
               "ps.training",
               "the embedding \"{}\" has no rule, and the optimizer no parameter whose rule it "
               "could take",
               table);
  tables_.sparse.push_back({.name = table,
                            .dim = dim,
                            .rule = given.rule != nullptr ? given.rule : tables_.dense.front().rule,
                            .initial_range = given.initial_range,
                            .seed = given.seed,
                            .entry = given.entry,
                            .statistics = given.statistics,
                            .shrink = given.shrink});
  rates_.push_back(given.lr);
}

void ServedModel::bind(TableClient& client, const EmbeddingRows::Options& options) {
  for (uint32_t table = 0; table < tables_.sparse.size(); ++table) {
    rows_.push_back(std::make_shared<EmbeddingRows>(client, table, options));
  }
  for (const auto& [embedding, table] : embeddings_) {
    embedding->bind(rows_[table]);
  }
}

std::vector<std::span<float>> ServedModel::values() const {
  std::vector<std::span<float>> values;
  for (const auto& [name, parameter] : optimizer_.parameters()) {
    values.push_back(memory_of(parameter));
  }
  return values;
}

void ServedModel::note_change() const {
  for (const auto& [name, parameter] : optimizer_.parameters()) {
    parameter.unsafeGetTensorImpl()->bump_version();
  }
}

ServedModel::Gradients ServedModel::gradients() const {
  Gradients all;
  for (size_t i = 0; i < groups_.size(); ++i) {
    const at::Tensor& parameter = optimizer_.parameters()[i].second;
    const at::Tensor& gradient = parameter.grad();
    all.kept.push_back(gradient.defined() ? gradient.contiguous() : at::zeros_like(parameter));
    all.gradients.emplace_back(memory_of(all.kept.back()));
    all.lr.push_back(optimizer_.param_groups()[groups_[i]].lr);
  }
  return all;
}

}  // namespace argosy::ps
