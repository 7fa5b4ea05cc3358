#pragma once

#include <cstddef>
#include <cstdint>

#include "argosy/transport/reduction.h"
#include "argosy/transport/shm/blocks.h"
#include "argosy/transport/shm/rounds.h"
#include "argosy/transport/transport.h"
#include "argosy/transport/types.h"

// Internal to the room: the collectives that add, in shared memory.
namespace argosy::transport {

/// One collective of a host's ranks that combines their data. Each rank combines a share of the
/// elements and reads the others' shares; small data is combined by every rank. The bits are the
/// same on every way.
class ShmReduction final {
 public:
  /// `rounds`: an operation that nothing has used yet. Lifetime: refers to `deal`.
  ShmReduction(const Rounds::Operation& rounds,
               const LeafDeal& deal,
               DType dtype,
               ReduceOp op,
               const Blocks& blocks)
      : rounds_(rounds), reduction_(deal, dtype, op), blocks_(blocks) {}

  /// On all ranks. One node of each rank that lies in one of `blocks` is added where it lies.
  void all_reduce(const TreeBuffers& data, int64_t count);
  void reduce(const TreeBuffers& data, int64_t count, int root);
  /// A node holds `count` elements for each rank.
  void reduce_scatter(const TreeBuffers& data, int64_t count);

 private:
  /// The elements of a piece of data that one rank combines.
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
  };
  /// The part of the data that one round moves: some elements of each node.
  struct Chunk {
    int64_t round = 0;
    int64_t begin = 0;
    int64_t count = 0;
  };
  static constexpr int kAll = -1;  ///< as a root: every rank takes the result

  void at_once(const TreeBuffers& data, int64_t count);
  [[nodiscard]] bool in_place(const TreeBuffers& data, int64_t count, uint64_t offset);
  [[nodiscard]] bool all_in_one_block(int64_t bytes) const;
  void combine_in_place(std::byte* block, int64_t count);
  void in_shares(const TreeBuffers& data, int64_t count, int root);
  void open(const TreeBuffers& data, const Chunk& chunk);
  void combine_share(const TreeBuffers& data, const Chunk& chunk, int root);
  void take_shares(const TreeBuffers& data, const Chunk& chunk);

  [[nodiscard]] const LeafDeal& deal() const { return reduction_.deal(); }
  [[nodiscard]] int64_t bytes_of(int64_t count) const { return count * reduction_.element_bytes(); }
  [[nodiscard]] int64_t elements_of_a_slot() const;
  [[nodiscard]] Chunk chunk_of(int64_t round, int64_t count) const;
  [[nodiscard]] Share share_of(int rank, int64_t count) const;
  /// Where a node's elements lie in a slot, and a sum's in a result.
  [[nodiscard]] int64_t row(size_t index) const {
    return bytes_of(static_cast<int64_t>(index) * elements_of_a_slot());
  }
  [[nodiscard]] const std::byte* node_in_slot(const LeafDeal::Term& term, int64_t round) const {
    return rounds_.slot(term.rank, round) + row(static_cast<size_t>(term.index));
  }
  [[nodiscard]] static const std::byte* node_of(const TreeBuffers& data,
                                                const LeafDeal::Term& term) {
    return static_cast<const std::byte*>(data.nodes[static_cast<size_t>(term.index)]);
  }

  Rounds::Operation rounds_;
  Reduction reduction_;
  const Blocks& blocks_;
  int64_t opened_ = 0;  ///< rounds whose slot this rank has published
};

}  // namespace argosy::transport
