#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "argosy/transport/gloo/gloo.h"
#include "argosy/transport/gloo/gloo_exchange.h"
#include "argosy/transport/reduction.h"
#include "argosy/transport/types.h"

// Internal to the room: the collectives that add, over Gloo's connections.
namespace argosy::transport {

/// How the sums of a transport are made, and memory for them that it keeps.
struct GlooSums {
  GlooAlgorithm algorithm = GlooAlgorithm::kRankOrder;
  std::vector<std::byte> scratch{};
};

/// One collective that combines the data of all ranks.
class GlooReduction final {
 public:
  GlooReduction(const GlooExchange& exchange, DType dtype, ReduceOp op, GlooSums& sums)
      : exchange_(exchange),
        dtype_(dtype),
        op_(op),
        reduction_(exchange.size(), dtype, op),
        sums_(sums) {}

  /// In place, on all ranks.
  void all_reduce(void* data, int64_t count);
  /// In place on `root`; the data of other ranks keeps its value.
  void reduce(void* data, int64_t count, int root);
  /// `input` holds `count` elements for each rank.
  void reduce_scatter(const void* input, void* output, int64_t count);

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
  /// Who takes the combined segments: one rank, kAll or kNobody; and the whole buffer there.
  struct Spread {
    int to = kNobody;
    void* data = nullptr;
  };

  void direct(void* data, int64_t count);
  void in_segments(const void* input,
                   void* result,
                   const std::vector<Segment>& segments,
                   const Spread& spread);
  void ring(void* data, int64_t count);
  void divide_by_size(void* data, int64_t count);

  [[nodiscard]] std::vector<Segment> divide(int64_t count) const;
  [[nodiscard]] std::byte* scratch(int64_t bytes);
  [[nodiscard]] int64_t bytes_of(int64_t count) const { return count * reduction_.element_bytes(); }
  [[nodiscard]] int64_t elements_of_a_block() const {
    return kBlockBytes / reduction_.element_bytes();
  }

  const GlooExchange exchange_;
  const DType dtype_;
  const ReduceOp op_;
  Reduction reduction_;
  GlooSums& sums_;
};

}  // namespace argosy::transport
