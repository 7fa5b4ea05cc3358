#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/transport/gloo/gloo_exchange.h"
#include "argosy/transport/reduction.h"
#include "argosy/transport/transport.h"
#include "argosy/transport/types.h"

// Internal to the room: the collectives that add, over Gloo's connections.
namespace argosy::transport {

/// One collective that combines the data of all ranks.
class GlooReduction final {
 public:
  /// `scratch`: memory that the transport keeps. Lifetime: refers to `deal` and `scratch`.
  GlooReduction(const GlooExchange& exchange,
                const LeafDeal& deal,
                DType dtype,
                ReduceOp op,
                std::vector<std::byte>& scratch)
      : exchange_(exchange), reduction_(deal, dtype, op), scratch_(scratch) {}

  /// On all ranks.
  void all_reduce(const TreeBuffers& data, int64_t count);
  void reduce(const TreeBuffers& data, int64_t count, int root);
  /// A node holds `count` elements for each rank.
  void reduce_scatter(const TreeBuffers& data, int64_t count);

 private:
  /// The elements of a buffer that one rank combines, cut into blocks.
  struct Segment {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t block = 1;

    [[nodiscard]] int64_t blocks() const { return (end - begin + block - 1) / block; }
    [[nodiscard]] int64_t start(int64_t i) const { return begin + i * block; }
    [[nodiscard]] int64_t length(int64_t i) const { return std::min(block, end - start(i)); }
  };
  static constexpr int kNobody = -2;
  static constexpr int kAll = -1;

  void direct(const TreeBuffers& data, int64_t count);
  void in_segments(const TreeBuffers& data, const std::vector<Segment>& segments, int to);

  [[nodiscard]] const LeafDeal& deal() const { return reduction_.deal(); }
  [[nodiscard]] int nodes_of(int rank) const { return static_cast<int>(deal().nodes(rank).size()); }
  [[nodiscard]] std::vector<Segment> divide(int64_t count) const;
  [[nodiscard]] std::byte* scratch(int64_t bytes);
  [[nodiscard]] int64_t bytes_of(int64_t count) const { return count * reduction_.element_bytes(); }
  [[nodiscard]] int64_t elements_of_a_block() const {
    return kBlockBytes / reduction_.element_bytes();
  }

  const GlooExchange exchange_;
  Reduction reduction_;
  std::vector<std::byte>& scratch_;
};

}  // namespace argosy::transport
