#include "argosy/ps/geo_steps.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/ps/embedding_rows.h"
#include "argosy/ps/id_deal.h"
#include "argosy/ps/local_rows.h"

namespace argosy::ps {

GeoSteps::GeoSteps(TableClient& client, const ServedModel& model, const GeoOptions& options)
    : client_(client), model_(model), options_(options), dense_(model) {
  check(model.tables());
}

void GeoSteps::check(const TableSet& tables) {
  for (const SparseOptions& table : tables.sparse) {
    ARGOSY_CHECK(!table.entry.waits(),
                 "ps.geo",
                 "table \"{}\" makes a row {}: in kGeo workers train rows before the servers have "
                 "them. Take another mode, or EmbeddingOptions without an entry",
                 table.name,
                 table.entry.describe());
  }
}

void GeoSteps::step() {
  dense_.update(model_.gradients());
  for (const std::shared_ptr<EmbeddingRows>& rows : model_.rows()) {
    const EmbeddingRows::Pending taken = rows->take();
    rows->local().train(client_.deal(taken.ids), taken.gradients, model_.rate_of(rows->table()));
  }
  if (++made_ == static_cast<uint64_t>(options_.steps)) {
    pull();
  }
}

void GeoSteps::pull() {
  if (made_ > 0) {
    send_difference();
    made_ = 0;
  }
  read();
}

/// One push for all steps of the round, with every change divided by the number of workers.
void GeoSteps::send_difference() {
  const auto share = [&](std::vector<float>& numbers) {
    for (float& one : numbers) {
      one /= static_cast<float>(options_.workers);
    }
  };
  std::vector<LocalRows::Differences> differences;
  std::vector<IdDeal> deals;
  std::vector<TableClient::Gradients> rows;
  differences.reserve(model_.rows().size());
  deals.reserve(model_.rows().size());
  for (const std::shared_ptr<EmbeddingRows>& of_table : model_.rows()) {
    LocalRows::Differences& changed = differences.emplace_back(of_table->local().differences());
    share(changed.values);
    deals.emplace_back(changed.ids);
    rows.push_back({.table = of_table->table(), .ids = deals.back(), .gradients = changed.values});
  }
  TableClient::DenseGradients dense;
  const std::vector<std::span<float>> values = model_.values();
  for (size_t i = 0; i < values.size(); ++i) {
    std::ranges::transform(values[i], begun_[i], begun_[i].begin(), std::minus());
    share(begun_[i]);
    dense.gradients.emplace_back(begun_[i]);
    dense.lr.push_back(0);
  }
  client_.push_differences(rows, values.empty() ? nullptr : &dense, made_);
}

void GeoSteps::read() {
  std::vector<std::vector<uint64_t>> used;
  std::vector<IdDeal> deals;
  std::vector<std::vector<float>> values;
  std::vector<TableClient::Rows> rows;
  for (const std::shared_ptr<EmbeddingRows>& of_table : model_.rows()) {
    used.push_back(of_table->local().used());
    deals.emplace_back(used.back());
    values.emplace_back(used.back().size() * of_table->local().dim());
  }
  for (size_t i = 0; i < used.size(); ++i) {
    rows.push_back({.table = model_.rows()[i]->table(), .ids = deals[i], .out = values[i]});
  }
  const TableClient::Dense dense{.values = model_.values()};
  client_.pull(rows, &dense);
  model_.note_change();
  for (size_t i = 0; i < used.size(); ++i) {
    model_.rows()[i]->local().begin_round(used[i], values[i]);
  }
  begun_.clear();
  for (const std::span<float>& one : dense.values) {
    begun_.emplace_back(one.begin(), one.end());
  }
}

}  // namespace argosy::ps
