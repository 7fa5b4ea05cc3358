#include "argosy/ps/row_snapshot.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace argosy::ps {
namespace {

/// Returns in which order the ids ascend.
std::vector<size_t> ascending(const std::vector<uint64_t>& ids) {
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return ids[i]; });
  return order;
}

/// Puts rows of `width` numbers into that order.
template <typename Number>
void put_in_order(const std::vector<size_t>& order, size_t width, std::vector<Number>& rows) {
  std::vector<Number> sorted(rows.size());
  auto to = sorted.begin();
  for (const size_t i : order) {
    to = std::copy_n(rows.begin() + static_cast<ptrdiff_t>(i * width), width, to);
  }
  rows = std::move(sorted);
}

/// Returns part `number` of as many as there are of `most` rows each.
template <typename Number>
std::vector<Number> part_of_rows(const std::vector<Number>& all,
                                 size_t width,
                                 size_t number,
                                 size_t most) {
  const size_t begin = std::min(number * most * width, all.size());
  const size_t end = std::min(begin + most * width, all.size());
  return {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)};
}

}  // namespace

void for_each_part(const SavedRows& all,
                   size_t bytes,
                   const std::function<void(const SavedRows&)>& visit) {
  const size_t rows = std::max<size_t>(all.ids.size(), 1);
  const size_t dim = all.weights.size() / rows;
  const size_t state_size = all.state.size() / rows;
  const size_t row_bytes = sizeof(uint64_t) + (dim + state_size) * sizeof(float);
  constexpr size_t kWaitingBytes = sizeof(uint64_t) + sizeof(uint32_t);
  const size_t most = std::max<size_t>(bytes / (row_bytes + kWaitingBytes), 1);
  const size_t longer = std::max(all.ids.size(), all.waiting.size());
  for (size_t number = 0; number == 0 || number * most < longer; ++number) {
    visit({.ids = part_of_rows(all.ids, 1, number, most),
           .weights = part_of_rows(all.weights, dim, number, most),
           .state = part_of_rows(all.state, state_size, number, most),
           .waiting = part_of_rows(all.waiting, 1, number, most),
           .sights = part_of_rows(all.sights, 1, number, most),
           .day = all.day});
  }
}

void RowSnapshot::keep_waiting(uint64_t id, uint32_t sights) {
  (void)kept_.try_emplace(id, Before{.kind = Before::Kind::kWaiting, .sights = sights});
}

void RowSnapshot::keep_row(uint64_t id, const float* row) {
  const auto [kept, is_new] = kept_.try_emplace(id, Before{.kind = Before::Kind::kRow});
  if (is_new) {
    kept->second.row.assign(row, row + dim_ + state_size_);
  }
}

void RowSnapshot::copy_waiting(uint64_t id, uint32_t sights) {
  if (!copy_kept(id)) {
    add_waiting(id, sights);
  }
}

void RowSnapshot::copy_row(uint64_t id, const float* row) {
  if (!copy_kept(id)) {
    add_row(id, {row, dim_ + state_size_});
  }
}

bool RowSnapshot::copy_kept(uint64_t id) {
  const auto kept = kept_.find(id);
  if (kept == kept_.end()) {
    return false;
  }
  const Before& before = kept->second;
  if (before.kind == Before::Kind::kWaiting) {
    add_waiting(id, before.sights);
  } else if (before.kind == Before::Kind::kRow) {
    add_row(id, before.row);
  }
  kept_.erase(kept);
  return true;
}

void RowSnapshot::add_waiting(uint64_t id, uint32_t sights) {
  copy_.waiting.push_back(id);
  copy_.sights.push_back(sights);
}

void RowSnapshot::add_row(uint64_t id, std::span<const float> row) {
  copy_.ids.push_back(id);
  copy_.weights.insert(
      copy_.weights.end(), row.begin(), row.begin() + static_cast<ptrdiff_t>(dim_));
  copy_.state.insert(copy_.state.end(), row.begin() + static_cast<ptrdiff_t>(dim_), row.end());
}

SavedRows RowSnapshot::take() {
  const std::vector<size_t> rows = ascending(copy_.ids);
  put_in_order(rows, 1, copy_.ids);
  put_in_order(rows, dim_, copy_.weights);
  put_in_order(rows, state_size_, copy_.state);
  const std::vector<size_t> waiting = ascending(copy_.waiting);
  put_in_order(waiting, 1, copy_.waiting);
  put_in_order(waiting, 1, copy_.sights);
  return std::move(copy_);
}

}  // namespace argosy::ps
