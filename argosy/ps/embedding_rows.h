#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/ps/embedding.h"
#include "argosy/ps/local_rows.h"
#include "argosy/ps/table_client.h"

namespace argosy::ps {

/// What embeddings of one table read, and the gradients that wait to be sent. Internal to the room.
class EmbeddingRows final : public std::enable_shared_from_this<EmbeddingRows> {
 public:
  struct Options {
    bool ahead = false;       ///< rows may be read before the step that comes before their use
    bool keeps_read = false;  ///< see Pending::read
    bool local = false;       ///< rows are read from local(), and trained there
  };
  EmbeddingRows(TableClient& client, uint32_t table, const Options& options);

  /// Returns the rows of `ids`, i64 of any shape, contiguous: a leaf whose gradient is kept here.
  /// The id `padding` has zeros, and no gradient.
  [[nodiscard]] at::Tensor pull(const at::Tensor& ids,
                                std::optional<int64_t> padding,
                                const ClickCounts& counts = {});
  /// Begins what the next pull() of the same ids ends. Any other pull() forgets it.
  void prefetch(const at::Tensor& ids, std::optional<int64_t> padding);
  /// Returns the gradients since the last call, of all batches as of one.
  struct Pending {
    std::vector<uint64_t> ids{};
    std::vector<float> gradients{};
    std::vector<float> shows{};   ///< [ids], or empty: 1 each
    std::vector<float> clicks{};  ///< [ids], or empty: 0 each
    std::vector<float> read{};    ///< like the gradients: the rows that they are of
    TableClient::Seen seen{};     ///< by the first read of them; empty without gradients
  };
  [[nodiscard]] Pending take();
  [[nodiscard]] uint32_t table() const { return table_; }
  /// Only with Options::local.
  [[nodiscard]] LocalRows& local() { return *local_; }

 private:
  /// A batch whose rows are on their way.
  struct Batch {
    at::Tensor ids{};
    std::vector<uint64_t> wanted{};  ///< without the padding
    std::vector<size_t> places{};    ///< of these in the batch
    std::vector<float> shows{};      ///< of these, or empty
    std::vector<float> clicks{};
    std::unique_ptr<IdDeal> deal{};
    TableClient::Reading reading{};
    TableClient::Seen seen{};
    at::Tensor rows{};  ///< that were read, where they are kept
  };
  [[nodiscard]] Batch begin(const at::Tensor& ids, std::optional<int64_t> padding);
  [[nodiscard]] at::Tensor finish(Batch& batch);
  /// Keeps the gradient of a batch's rows.
  void keep(const Batch& batch, const at::Tensor& gradient);

  TableClient& client_;
  const uint32_t table_;
  const Options options_;
  std::unique_ptr<LocalRows> local_;
  std::optional<Batch> ahead_{};
  std::mutex mutex_;  ///< backward runs in threads of libtorch
  Pending pending_{};
};

}  // namespace argosy::ps
