#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/ps/table_client.h"

namespace argosy::ps {

/// What embeddings of one table read, and the gradients that wait to be sent. Internal to the room.
class EmbeddingRows final : public std::enable_shared_from_this<EmbeddingRows> {
 public:
  EmbeddingRows(TableClient& client, uint32_t table) : client_(client), table_(table) {}

  /// Returns the rows of `ids`, i64 of any shape, contiguous: a leaf whose gradient is kept here.
  /// The id `padding` has zeros, and no gradient.
  [[nodiscard]] at::Tensor pull(const at::Tensor& ids, std::optional<int64_t> padding);
  /// Returns the gradients since the last call, of all batches as of one.
  struct Pending {
    std::vector<uint64_t> ids{};
    std::vector<float> gradients{};
  };
  [[nodiscard]] Pending take();
  [[nodiscard]] uint32_t table() const { return table_; }

 private:
  /// Keeps the gradient, [n, dim], of those ids of a batch that stand at `places` of it.
  void keep(std::span<const uint64_t> ids,
            std::span<const size_t> places,
            const at::Tensor& gradient);

  TableClient& client_;
  const uint32_t table_;
  std::mutex mutex_;  ///< backward runs in threads of libtorch
  Pending pending_{};
};

}  // namespace argosy::ps
