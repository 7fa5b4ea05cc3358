#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "argosy/ps/row_rule.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/shards.h"

namespace argosy::ps {

/// A parameter that is held as a whole, in one shard.
struct DenseOptions {
  std::string name{};
  std::vector<float> initial{};  ///< its first values
  std::vector<int64_t> shape{};  ///< as it is saved; empty: [n]
  std::shared_ptr<const RowRule> rule = naive();
};

/// The numbers of a dense parameter.
struct DenseNumbers {
  std::vector<float> weights{};
  std::vector<float> state{};  ///< of its rule
  auto fields() { return std::tie(weights, state); }
};

/// A dense parameter by its number in TableSet::dense.
struct SavedDense {
  uint64_t number = 0;
  DenseNumbers values{};
  auto fields() { return std::tie(number, values); }
};

/// All tables of a job. Workers and servers make it from the same program.
struct TableSet {
  std::vector<SparseOptions> sparse{};
  std::vector<DenseOptions> dense{};

  /// Returns a line for each table: name, sizes, rule. Two sets with the same lines fit each other.
  [[nodiscard]] std::vector<std::string> lines() const;
  /// Returns a hash of the lines, by which processes see that they have the same.
  [[nodiscard]] uint64_t fingerprint() const;
  /// Errors: UsageError when no sparse table has the name.
  [[nodiscard]] uint32_t index_of(std::string_view sparse_name) const;
};

/// Returns the first line that two sets do not have alike, "nothing more" at the end of one.
/// nullopt: all are alike.
struct LinesApart {
  std::string theirs{};
  std::string mine{};
};
[[nodiscard]] std::optional<LinesApart> first_apart(const std::vector<std::string>& theirs,
                                                    const std::vector<std::string>& mine);

/// Returns the shard of each dense parameter: large ones are spread first.
[[nodiscard]] std::vector<int> dense_shards(std::span<const DenseOptions> dense);

}  // namespace argosy::ps
