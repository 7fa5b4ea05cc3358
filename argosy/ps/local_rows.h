#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "argosy/ps/id_deal.h"
#include "argosy/ps/row_index.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/table_client.h"

namespace argosy::ps {

/// The rows of one table that a worker trains by itself, in rounds: see GeoSteps. In a round it
/// reads a row from the servers once. The state of the table's rule lies here, for each row that
/// this worker has ever read, and never travels. Not thread-safe.
class LocalRows final {
 public:
  /// Lifetime: the client stays.
  LocalRows(TableClient& client, uint32_t table);

  /// Writes the rows of a batch, [n, dim]. Blocks: for rows that are not here yet.
  /// Errors: those of TableClient::pull().
  void read(const IdDeal& ids, std::span<float> out);
  /// Updates rows by the rule of the table. `gradients`: of the batch, [n, dim].
  void train(const IdDeal& ids, std::span<const float> gradients, double lr);

  /// What training has changed in this round, each id once: f32 [ids, dim].
  struct Differences {
    std::vector<uint64_t> ids{};
    std::vector<float> values{};
  };
  [[nodiscard]] Differences differences() const;
  /// Returns the ids that were read or trained in this round, each once.
  [[nodiscard]] std::vector<uint64_t> used() const;
  /// Begins a round with these rows as the servers have them now, f32 [ids, dim]. All others are
  /// read when they are needed.
  void begin_round(const std::vector<uint64_t>& ids, std::span<const float> rows);

  [[nodiscard]] uint32_t table() const { return table_; }
  [[nodiscard]] size_t dim() const { return trained_.options().dim; }

 private:
  enum class Use : uint8_t { kNone, kRead, kTrained };

  void add(std::span<const uint64_t> ids, std::span<const float> rows);
  /// Has all of these rows, and notes their use.
  void need(std::span<const uint64_t> ids, Use use);

  TableClient& client_;
  const uint32_t table_;
  RowTable trained_;
  // Of this round.
  RowIndex places_{};
  std::vector<uint64_t> ids_{};
  std::vector<float> begun_{};  ///< the rows as they were read, [ids, dim]
  std::vector<Use> uses_{};
};

}  // namespace argosy::ps
