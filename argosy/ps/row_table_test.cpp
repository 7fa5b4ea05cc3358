#include "argosy/ps/row_table.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <unordered_map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/ps/first_row.h"

namespace argosy::ps {
namespace {

using Ids = std::vector<uint64_t>;

// -- RowIndex

TEST(RowIndex, FindsWhatAMapFinds) {
  RowIndex index;
  std::unordered_map<uint64_t, uint32_t> map;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t id = random() % 20'000;
    if (random() % 3 == 0) {
      index.erase(id);
      map.erase(id);
    } else {
      const auto row = static_cast<uint32_t>(random() % 1'000'000);
      index.add(id).set_row(row);
      map[id] = row;
    }
  }
  EXPECT_EQ(index.size(), map.size());
  for (uint64_t id = 0; id < 20'000; ++id) {
    const RowIndex::Slot* const slot = index.find(id);
    ASSERT_EQ(slot != nullptr, map.contains(id)) << id;
    if (slot != nullptr) {
      EXPECT_EQ(slot->row(), map.at(id));
    }
  }
  size_t seen = 0;
  index.for_each([&](const RowIndex::Slot& slot) { seen += map.contains(slot.id()) ? 1 : 0; });
  EXPECT_EQ(seen, map.size());
}

TEST(RowIndex, TakesAtMost19BytesARow) {
  RowIndex index;
  for (uint64_t id = 0; id < 300'000; ++id) {
    (void)index.add(id);
    if (id > 1000) {
      ASSERT_LE(static_cast<double>(index.bytes()), 18.9 * static_cast<double>(id + 1)) << id;
    }
  }
}

// -- RowTable

SparseOptions small(const std::string& name = "words") {
  return {.name = name, .dim = 4, .rule = naive(), .initial_range = 0.5F, .seed = 3};
}

std::vector<float> pulled(const RowTable& table, const Ids& ids) {
  std::vector<float> out(ids.size() * table.options().dim);
  table.pull(ids, out);
  return out;
}

void push(RowTable& table,
          const Ids& ids,
          float gradient,
          const std::vector<float>& shows = {},
          const std::vector<float>& clicks = {}) {
  const std::vector<float> all(ids.size() * table.options().dim, gradient);
  table.push({.ids = ids, .gradients = all, .shows = shows, .clicks = clicks, .lr = 0.1});
}

SavedRows saved(RowTable& table) {
  RowSnapshot& copy = table.freeze();
  while (!table.copy_frozen(copy, 7)) {
  }
  SavedRows rows = copy.take();
  table.unfreeze(copy);
  return rows;
}

TEST(RowTable, ANewRowIsAFunctionOfSeedAndId) {
  RowTable table(small());
  const std::vector<float> before = pulled(table, {5, 9, UINT64_MAX});
  EXPECT_EQ(table.rows(), 0U) << "a pull made rows";
  push(table, {9}, 0);
  push(table, {UINT64_MAX, 5}, 0);
  EXPECT_EQ(table.rows(), 3U);
  EXPECT_EQ(pulled(table, {5, 9, UINT64_MAX}), before);
  for (const float weight : before) {
    EXPECT_GE(weight, -0.5F);
    EXPECT_LT(weight, 0.5F);
  }
  SparseOptions other = small();
  other.seed = 4;
  EXPECT_NE(pulled(RowTable(other), {5}), pulled(table, {5}));
}

TEST(RowTable, FirstWeightsAreSpreadEvenly) {
  constexpr size_t kRows = 20'000;
  SparseOptions options = small();
  options.initial_range = 1;
  RowTable table(options);
  Ids ids(kRows);
  std::iota(ids.begin(), ids.end(), 0);
  const std::vector<float> weights = pulled(table, ids);
  std::array<int, 16> counts{};
  double sum = 0;
  for (const float weight : weights) {
    ++counts[static_cast<size_t>((weight + 1) * 8)];
    sum += weight;
  }
  const double expected = static_cast<double>(weights.size()) / 16;
  double chi2 = 0;
  for (const int count : counts) {
    chi2 += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi2, 37.7);  // 15 degrees of freedom, p = 0.001
  EXPECT_LT(std::abs(sum / static_cast<double>(weights.size())), 0.01);
}

TEST(RowTable, ManyRowsAreUpdatedEachAsItself) {
  RowTable table(small());
  std::map<uint64_t, double> sums;
  std::mt19937_64 random(11);
  for (int round = 0; round < 50; ++round) {
    std::map<uint64_t, float> gradients;
    for (int i = 0; i < 997; ++i) {
      gradients[random() % 5000 * 0x9e3779b97f4a7c15U] = static_cast<float>(random() % 100) / 64;
    }
    Ids ids;
    std::vector<float> all;
    for (const auto& [id, gradient] : gradients) {
      ids.push_back(id);
      all.insert(all.end(), 4, gradient);
      sums[id] += gradient;
    }
    table.push({.ids = ids, .gradients = all, .lr = 0.125});
  }
  EXPECT_EQ(table.rows(), sums.size());
  for (const auto& [id, sum] : sums) {
    std::vector<float> first(4);
    draw_first_row(3, id, 0.5F, first);
    const std::vector<float> now = pulled(table, {id});
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(now[i], first[i] - 0.125 * sum, 1e-5) << id;
    }
  }
}

TEST(RowTable, AnEntryKeepsRareIdsOut) {
  SparseOptions options = small();
  options.entry = Entry::count(3);
  RowTable counted(options);
  push(counted, {1, 2}, 1);
  push(counted, {1}, 1);
  EXPECT_EQ(counted.rows(), 0U);
  EXPECT_THAT(pulled(counted, {1}), ::testing::Each(0.0F));
  push(counted, {1}, 1);
  EXPECT_EQ(counted.rows(), 1U);
  std::vector<float> first(4);
  draw_first_row(3, 1, 0.5F, first);
  EXPECT_FLOAT_EQ(pulled(counted, {1})[0], first[0] - 0.1F) << "only the last push counts";

  options.entry = Entry::probability(0.25);
  RowTable drawn(options);
  RowTable reversed(options);
  Ids ids(4000);
  std::iota(ids.begin(), ids.end(), 0);
  push(drawn, ids, 1);
  EXPECT_NEAR(static_cast<double>(drawn.rows()), 1000, 100);
  std::ranges::reverse(ids);
  push(reversed, ids, 1);
  EXPECT_EQ(pulled(drawn, ids), pulled(reversed, ids));

  options.entry = Entry::show_click({.score = 2});
  RowTable clicked(options);
  push(clicked, {1, 2}, 1, {1, 1}, {1, 0});  // scores 1 and 0.1
  EXPECT_EQ(clicked.rows(), 0U);
  push(clicked, {1, 2}, 1, {1, 1}, {1, 0});
  EXPECT_EQ(clicked.rows(), 1U);
  EXPECT_THROW((void)Entry::probability(1), UsageError);
  EXPECT_THROW((void)Entry::count(-1), UsageError);
}

TEST(RowTable, ShrinkDropsWhatNobodySees) {
  SparseOptions options = small();
  options.statistics = true;
  options.shrink = {.show_click_decay = 1, .delete_score = 0.5F, .delete_after_unseen_days = 2};
  RowTable table(options);
  push(table, {1, 2, 3}, 1, {10, 1, 10}, {0, 0, 5});  // scores 1, 0.1, 5.5
  EXPECT_EQ(table.shrink(), 1U);
  EXPECT_EQ(table.rows(), 2U);
  table.set_day(3);
  push(table, {3}, 1);
  EXPECT_EQ(table.shrink(), 1U) << "id 1 was not seen for three days";
  std::vector<float> first(4);
  draw_first_row(3, 1, 0.5F, first);
  EXPECT_EQ(pulled(table, {1}), first) << "a row that comes back begins anew";
  push(table, {7, 8, 9}, 1);
  EXPECT_EQ(table.rows(), 4U);
  EXPECT_THROW((void)RowTable(small()).shrink(), UsageError);
}

TEST(RowTable, RowsComeBackWithTheirState) {
  SparseOptions options = small();
  options.rule = adam();
  options.statistics = true;
  RowTable table(options);
  push(table, {1, 2, 3}, 1);
  push(table, {2}, 0.5F);
  RowTable copy(options);
  copy.restore(saved(table));
  push(table, {1, 2, 3, 4}, -1);
  push(copy, {1, 2, 3, 4}, -1);
  EXPECT_EQ(pulled(copy, {1, 2, 3, 4}), pulled(table, {1, 2, 3, 4}));
  RowTable other(small());
  EXPECT_THROW(other.restore(saved(table)), UsageError) << "its rows have no such state";
}

/// A copy that is made a few slots at a time has what was there when it began, whatever is pushed,
/// added, made, dropped and moved meanwhile.
TEST(RowTable, ACopyGoesOnPieceByPieceWhileTheTableGrows) {
  RowTable table(small());
  for (uint64_t id = 0; id < 1'000; ++id) {
    push(table, {id}, 0);
  }
  const SavedRows before = saved(table);
  RowSnapshot& frozen = table.freeze();
  ASSERT_FALSE(table.copy_frozen(frozen, 100));
  for (uint64_t id = 1'000; id < 20'000; ++id) {
    push(table, {id}, 0);
  }
  int pieces = 0;
  while (!table.copy_frozen(frozen, 1'000)) {
    ++pieces;
  }
  EXPECT_GT(pieces, 15) << "what was left was copied when the table grew";
  const SavedRows copy = frozen.take();
  table.unfreeze(frozen);
  EXPECT_EQ(copy.ids, before.ids);
  EXPECT_EQ(copy.weights, before.weights);
}

TEST(RowTable, ACopyIsOfOneMoment) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200; ++round) {
    SparseOptions options = small();
    options.rule = std_adagrad();
    options.statistics = round % 2 == 0;
    options.entry = round % 3 == 0 ? Entry::count(2) : Entry();
    options.shrink.delete_score = 0.15F;
    RowTable table(options);
    const auto change = [&](uint64_t most) {
      for (uint64_t i = random() % 60; i > 0; --i) {
        push(table, {random() % most}, static_cast<float>(random() % 7));
      }
      if (options.statistics && random() % 4 == 0) {
        (void)table.shrink();
      }
    };
    table.set_day(round);
    change(200);
    change(200);
    const SavedRows before = saved(table);
    RowSnapshot& frozen = table.freeze();
    for (bool whole = false; !whole;) {
      whole = table.copy_frozen(frozen, random() % 20);
      change(400);
      (void)saved(table);  // another copy meanwhile
    }
    const SavedRows copy = frozen.take();
    table.unfreeze(frozen);
    EXPECT_EQ(copy.ids, before.ids) << round;
    EXPECT_EQ(copy.weights, before.weights) << round;
    EXPECT_EQ(copy.state, before.state) << round;
    EXPECT_EQ(copy.waiting, before.waiting) << round;
    EXPECT_EQ(copy.sights, before.sights) << round;
    EXPECT_EQ(copy.day, (std::vector<int32_t>{round}));
    RowTable again(options);
    again.restore(copy);
    EXPECT_EQ(saved(again).state, before.state);
    EXPECT_EQ(saved(again).sights, before.sights);
    EXPECT_EQ(saved(again).day, before.day);
  }
}

TEST(RowTable, SizesThatDoNotFitAreRefused) {
  RowTable table(small());
  std::vector<float> out(7);
  const Ids ids{1, 2};
  EXPECT_THROW(table.pull(ids, out), UsageError);
  EXPECT_THROW(table.push({.ids = ids, .gradients = out}), UsageError);
  EXPECT_THROW(RowTable({.name = "none", .dim = 0}), UsageError);
  EXPECT_THROW(RowTable({.name = "none", .dim = 1, .rule = nullptr}), UsageError);
}

TEST(SavedRows, ArePutTogetherFromParts) {
  const SavedRows all{.ids = {1, 2, 3, 4, 5},
                      .weights = {10, 11, 20, 21, 30, 31, 40, 41, 50, 51},
                      .state = {1, 2, 3, 4, 5},
                      .waiting = {7, 8, 9},
                      .sights = {70, 80, 90},
                      .day = {12}};
  for (size_t most = 1; most < 7; ++most) {
    SavedRows together;
    size_t parts = 0;
    const size_t bytes = most * (8 + 3 * 4 + 12);  // a row and a waiting id
    for_each_part(all, bytes + most % 2, [&](const SavedRows& part) {
      ++parts;
      EXPECT_LE(part.ids.size(), most);
      EXPECT_LE(part.waiting.size(), most);
      const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(together.ids, part.ids);
      append(together.weights, part.weights);
      append(together.state, part.state);
      append(together.waiting, part.waiting);
      append(together.sights, part.sights);
      EXPECT_EQ(part.day, all.day) << "each part can be restored alone";
    });
    EXPECT_EQ(parts, (all.ids.size() + most - 1) / most);
    EXPECT_EQ(together.ids, all.ids);
    EXPECT_EQ(together.weights, all.weights);
    EXPECT_EQ(together.state, all.state);
    EXPECT_EQ(together.waiting, all.waiting);
    EXPECT_EQ(together.sights, all.sights);
  }
  int parts = 0;
  for_each_part({.day = {3}}, 0, [&](const SavedRows& part) {
    ++parts;
    EXPECT_EQ(part.day, std::vector<int32_t>{3});
  });
  EXPECT_EQ(parts, 1) << "the day of a table without rows";
}

}  // namespace
}  // namespace argosy::ps
