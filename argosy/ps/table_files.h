#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/tensor_reader.h"
#include "argosy/ps/row_snapshot.h"
#include "argosy/ps/tables.h"

namespace argosy::ps {

/// What a server tells of the file that has one shard of all tables.
struct ShardFile {
  uint32_t shard = 0;
  int64_t bytes = 0;
  std::string checksum{};
  std::string blocks{};             ///< see checkpoint::ManifestFile
  std::vector<uint64_t> rows{};     ///< of each sparse table
  std::vector<uint64_t> waiting{};  ///< ids without a row of each
  auto fields() { return std::tie(shard, bytes, checksum, blocks, rows, waiting); }
};

/// Writes a shard into the folder of a checkpoint: `rows` of each sparse table, and the dense
/// parameters of the shard. Errors: CheckpointError with path.
[[nodiscard]] ShardFile write_shard(const std::string& folder,
                                    int shard,
                                    const TableSet& tables,
                                    std::span<const SavedRows> rows,
                                    std::span<const SavedDense> dense);

/// Describes the tables of a checkpoint whose shards are in `folder`, and writes what else belongs
/// to it. Tensors: part "model" has the parameters, part "tables" of a table T "T/ids" i64 [n],
/// "T/weights" f32 [n, dim] and "T/state", part "optimizer" "parameter/state".
/// Errors: CheckpointError.
[[nodiscard]] checkpoint::Manifest describe(const std::string& folder,
                                            const TableSet& tables,
                                            std::span<const ShardFile> shards);

/// Writes the program's own words about its place in the data into the checkpoint's folder, and
/// adds the file to the manifest. Errors: CheckpointError.
void write_place(const std::string& folder,
                 const std::string& place,
                 checkpoint::Manifest& manifest);
/// Returns them; "" where the checkpoint has none. Errors: CheckpointError for a damaged file.
[[nodiscard]] std::string read_place(const std::string& folder);

/// Reads what write_shard() has written. Thread-safe.
class TableFiles final {
 public:
  /// Errors: CheckpointError when it is no checkpoint; UsageError when it is one of other tables.
  TableFiles(const std::string& folder, const TableSet& tables);

  /// Errors: CheckpointError with the file that is damaged.
  [[nodiscard]] SavedRows rows(uint32_t table, int shard) const;
  [[nodiscard]] DenseNumbers dense(size_t number) const;

 private:
  template <typename Number>
  void read(const std::string& part,
            const std::string& name,
            int shard,
            std::vector<Number>& to) const;

  const checkpoint::TensorReader reader_;
  const TableSet& tables_;
};

}  // namespace argosy::ps
