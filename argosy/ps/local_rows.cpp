#include "argosy/ps/local_rows.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>

namespace argosy::ps {
namespace {

/// Rows, and the rule that updates them. What else a table does is done by the servers.
SparseOptions rows_of_worker(const SparseOptions& table) {
  return {.name = table.name, .dim = table.dim, .rule = table.rule, .initial_range = 0};
}

/// Returns where each of the rows [n, dim] begins.
template <typename Number>
std::vector<Number*> rows_in(std::span<Number> rows, size_t dim) {
  std::vector<Number*> all;
  for (size_t at = 0; at < rows.size(); at += dim) {
    all.push_back(&rows[at]);
  }
  return all;
}

}  // namespace

LocalRows::LocalRows(TableClient& client, uint32_t table)
    : client_(client), table_(table), trained_(rows_of_worker(client.tables().sparse[table])) {}

void LocalRows::read(const IdDeal& ids, std::span<float> out) {
  need(ids.ids(), Use::kRead);
  std::vector<float> rows(ids.ids().size() * dim());
  trained_.pull(ids.ids(), rows);
  ids.spread(rows_in<const float>(rows, dim()), dim(), out);
}

void LocalRows::train(const IdDeal& ids, std::span<const float> gradients, double lr) {
  need(ids.ids(), Use::kTrained);
  std::vector<float> sums(ids.ids().size() * dim());
  ids.gather(gradients, dim(), rows_in<float>(sums, dim()));
  trained_.push({.ids = ids.ids(), .gradients = sums, .lr = lr});
}

void LocalRows::need(std::span<const uint64_t> ids, Use use) {
  std::vector<uint64_t> missing;
  std::ranges::copy_if(
      ids, std::back_inserter(missing), [&](uint64_t id) { return places_.find(id) == nullptr; });
  if (!missing.empty()) {
    const IdDeal deal(missing);
    std::vector<float> rows(missing.size() * dim());
    const TableClient::Rows wanted{.table = table_, .ids = deal, .out = rows};
    client_.pull({&wanted, 1});
    add(missing, rows);
  }
  for (const uint64_t id : ids) {
    Use& known = uses_[places_.find(id)->row()];
    known = std::max(known, use);
  }
}

void LocalRows::add(std::span<const uint64_t> ids, std::span<const float> rows) {
  for (const uint64_t id : ids) {
    places_.add(id).set_row(static_cast<uint32_t>(ids_.size()));
    ids_.push_back(id);
    uses_.push_back(Use::kNone);
  }
  begun_.insert(begun_.end(), rows.begin(), rows.end());
  trained_.set(ids, rows);
}

LocalRows::Differences LocalRows::differences() const {
  Differences all;
  std::vector<float> before;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (uses_[i] == Use::kTrained) {
      all.ids.push_back(ids_[i]);
      const auto row = begun_.begin() + static_cast<ptrdiff_t>(i * dim());
      before.insert(before.end(), row, row + static_cast<ptrdiff_t>(dim()));
    }
  }
  all.values.resize(before.size());
  trained_.pull(all.ids, all.values);
  std::ranges::transform(all.values, before, all.values.begin(), std::minus());
  return all;
}

std::vector<uint64_t> LocalRows::used() const {
  std::vector<uint64_t> used;
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (uses_[i] != Use::kNone) {
      used.push_back(ids_[i]);
    }
  }
  return used;
}

void LocalRows::begin_round(const std::vector<uint64_t>& ids, std::span<const float> rows) {
  places_ = RowIndex();
  ids_.clear();
  begun_.clear();
  uses_.clear();
  add(ids, rows);
}

}  // namespace argosy::ps
