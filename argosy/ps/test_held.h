#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/ps/table_client.h"

namespace argosy::ps {

// A small training whose servers die, and what its tables hold in the end.

constexpr size_t kHeldDim = 4;
constexpr uint64_t kHeldRows = 200;

/// `weights`: of the dense parameter.
inline TableSet held_tables(size_t weights = 50) {
  TableSet all;
  all.sparse.push_back({.name = "ids", .dim = kHeldDim, .rule = adam(), .initial_range = 0.1F});
  all.sparse.push_back({.name = "counts", .dim = 1, .rule = naive(), .initial_range = 0});
  all.dense.push_back({.name = "weight",
                       .initial = std::vector<float>(weights, 1.0F),
                       .rule = weights > 50 ? adam() : naive()});
  return all;
}

struct Held {
  std::array<float, kHeldRows * kHeldDim> rows;
  std::array<float, kHeldRows> counts;  ///< minus how often each row was pushed
  std::array<float, 50> weight;         ///< its last elements
  friend bool operator==(const Held&, const Held&) = default;
};

/// Rows that were pushed.
inline double counted(const Held& held) {
  double sum = 0;
  for (const float one : held.counts) {
    sum -= one;
  }
  return sum;
}

inline Held held_by(TableClient& client) {
  Held held{};
  std::vector<uint64_t> all(kHeldRows);
  for (uint64_t id = 0; id < kHeldRows; ++id) {
    all[id] = id;
  }
  const IdDeal ids(all);
  const std::array<TableClient::Rows, 2> wanted{
      {{.table = 0, .ids = ids, .out = held.rows}, {.table = 1, .ids = ids, .out = held.counts}}};
  std::vector<float> weight(client.tables().dense[0].initial.size());
  const TableClient::Dense dense{.values = {weight}};
  client.pull(wanted, &dense);
  std::ranges::copy_n(
      weight.end() - std::ssize(held.weight), std::ssize(held.weight), held.weight.begin());
  return held;
}

/// One step: reads, then pushes gradients that depend on what it has read.
class HeldStep final {
 public:
  HeldStep(TableClient& client, int worker, int step)
      : client_(client),
        random_(static_cast<uint64_t>(worker * 100'000 + step)),
        batch_(64),
        weight_(client.tables().dense[0].initial.size()) {
    for (uint64_t& id : batch_) {
      id = random_() % kHeldRows;
    }
  }
  void pull() {
    const TableClient::Rows wanted{.table = 0, .ids = ids(), .out = rows_};
    const TableClient::Dense dense{.values = {weight_}};
    seen_ = client_.pull({&wanted, 1}, &dense);
    read_ = rows_;
    for (float& one : rows_) {
      one = 0.5F * one + static_cast<float>(random_() % 1000) / 1000 + 0.01F * weight_[0];
    }
  }
  void push() {
    const std::vector<float> ones(batch_.size(), 1.0F);
    const std::array<TableClient::Gradients, 2> pushed{
        {{.table = 0, .ids = ids(), .gradients = rows_, .lr = 0.01, .seen = seen_, .read = read_},
         {.table = 1, .ids = ids(), .gradients = ones, .lr = 1, .seen = seen_, .read = ones}}};
    const std::vector<float> gradient(weight_.size(), rows_[0]);
    const TableClient::DenseGradients dense{
        .gradients = {gradient}, .lr = {0.01}, .seen = seen_, .read = {weight_}};
    client_.push(pushed, &dense);
  }

 private:
  const IdDeal& ids() {
    if (!deal_) {
      deal_.emplace(batch_);
    }
    return *deal_;
  }

  TableClient& client_;
  std::mt19937_64 random_;
  std::vector<uint64_t> batch_;
  std::optional<IdDeal> deal_{};
  TableClient::Seen seen_{};
  std::vector<float> read_{};  ///< of rows_, before they became gradients
  std::vector<float> weight_;
  std::vector<float> rows_ = std::vector<float>(64 * kHeldDim);
};

inline void train_held(TableClient& client, int worker, int step) {
  HeldStep one(client, worker, step);
  one.pull();
  one.push();
}

/// "server0", "server1", …
inline std::vector<std::string> names(const std::string& kind, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(fmt::format("{}{}", kind, i));
  }
  return all;
}

/// How many servers a test kills. ARGOSY_PS_KILLS=250 is for a night.
inline int kills() {
  const std::optional<std::string> said = env::get("ARGOSY_PS_KILLS");
  return said ? std::stoi(*said) : 6;
}

}  // namespace argosy::ps
