#include "argosy/ps/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "argosy/base/check.h"
#include "argosy/base/fingerprint.h"

namespace argosy::ps {

std::vector<std::string> TableSet::lines() const {
  std::vector<std::string> lines;
  for (const SparseOptions& table : sparse) {
    lines.push_back(fmt::format("rows \"{}\": {} weights by {}, first within {} of seed {}{}{}",
                                table.name,
                                table.dim,
                                table.rule->name(),
                                table.initial_range,
                                table.seed,
                                table.entry.waits() ? ", made " + table.entry.describe() : "",
                                table.statistics ? ", with statistics" : ""));
  }
  for (const DenseOptions& parameter : dense) {
    lines.push_back(fmt::format("parameter \"{}\": {} weights by {}",
                                parameter.name,
                                parameter.initial.size(),
                                parameter.rule->name()));
  }
  return lines;
}

std::optional<LinesApart> first_apart(const std::vector<std::string>& theirs,
                                      const std::vector<std::string>& mine) {
  const auto line = [](const std::vector<std::string>& lines, size_t i) {
    return i < lines.size() ? lines[i] : "nothing more";
  };
  for (size_t i = 0; i < std::max(theirs.size(), mine.size()); ++i) {
    if (line(theirs, i) != line(mine, i)) {
      return LinesApart{line(theirs, i), line(mine, i)};
    }
  }
  return std::nullopt;
}

uint64_t TableSet::fingerprint() const {
  Fingerprint all;
  for (const std::string& line : lines()) {
    all.add(line);
  }
  for (const SparseOptions& table : sparse) {  // a resumed training may shrink its tables otherwise
    all.add(table.shrink.show_click_decay);
    all.add(table.shrink.delete_score);
    all.add(table.shrink.delete_after_unseen_days);
    all.add(table.shrink.nonclick);
    all.add(table.shrink.click);
  }
  return all.value();
}

uint32_t TableSet::index_of(std::string_view sparse_name) const {
  const auto found = std::ranges::find(sparse, sparse_name, &SparseOptions::name);
  std::vector<std::string_view> names;
  std::ranges::transform(sparse, std::back_inserter(names), &SparseOptions::name);
  ARGOSY_CHECK(found != sparse.end(),
               "ps.table",
               "there is no sparse table \"{}\". There are {}",
               sparse_name,
               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<uint32_t>(found - sparse.begin());
}

/// Shards are taken in an order whose first 2, 4, 8 … are spread evenly, so that a few parameters
/// fall to different servers.
std::vector<int> dense_shards(std::span<const DenseOptions> dense) {
  std::array<int, kShards> spread{};
  for (int i = 0; i < kShards; ++i) {
    for (int bit = 1, to = kShards / 2; bit < kShards; bit *= 2, to /= 2) {
      spread[static_cast<size_t>(i)] += (i & bit) != 0 ? to : 0;
    }
  }
  std::vector<size_t> order(dense.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, std::greater(), [&](size_t i) { return dense[i].initial.size(); });
  std::array<size_t, kShards> loads{};
  std::vector<int> shards(dense.size());
  for (const size_t i : order) {
    const auto least = static_cast<size_t>(std::ranges::min_element(loads) - loads.begin());
    loads[least] += dense[i].initial.size() + 1;
    shards[i] = spread[least];
  }
  return shards;
}

}  // namespace argosy::ps
