#pragma once

#include <cstddef>
#include <cstdint>

#include "argosy/transport/reduction.h"
#include "argosy/transport/shm/blocks.h"
#include "argosy/transport/shm/rounds.h"
#include "argosy/transport/types.h"

// Internal to the room: the collectives that add, in shared memory.
namespace argosy::transport {

/// One collective of a host's ranks that combines their data. Each rank combines a share of the
/// elements and reads the others' shares; small data is combined by every rank. The bits are the
/// same on every way.
class ShmReduction final {
 public:
  /// `rounds`: an operation that nothing has used yet.
  ShmReduction(const Rounds::Operation& rounds, DType dtype, ReduceOp op, const Blocks& blocks)
      : rounds_(rounds), reduction_(rounds.size(), dtype, op), blocks_(blocks) {}

  /// In place, on all ranks. Data of all ranks that lies in one of `blocks` is added where it lies.
  void all_reduce(void* data, int64_t count);
  /// In place on `root`; the data of other ranks keeps its value.
  void reduce(void* data, int64_t count, int root);
  /// `input` holds `count` elements for each rank.
  void reduce_scatter(const void* input, void* output, int64_t count);

 private:
  /// The elements of a piece of data that one rank combines.
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
  };
  /// The part of the data that one round moves.
  struct Chunk {
    int64_t round = 0;
    std::byte* data = nullptr;  ///< this rank's
    int64_t count = 0;
  };
  static constexpr int kAll = -1;  ///< as a root: every rank takes the result

  void at_once(void* data, int64_t count);
  [[nodiscard]] bool in_place(void* data, int64_t count, uint64_t offset);
  [[nodiscard]] bool all_in_one_block(int64_t bytes) const;
  void combine_in_place(std::byte* block, int64_t count);
  void in_shares(void* data, int64_t count, int root);
  void open(const Chunk& chunk);
  void combine_share(const Chunk& chunk, int root);
  void take_shares(const Chunk& chunk);

  [[nodiscard]] int64_t bytes_of(int64_t count) const { return count * reduction_.element_bytes(); }
  [[nodiscard]] int64_t elements_of_a_slot() const {
    return kSlotBytes / reduction_.element_bytes();
  }
  [[nodiscard]] Share share_of(int rank, int64_t count) const;

  Rounds::Operation rounds_;
  Reduction reduction_;
  const Blocks& blocks_;
  int64_t opened_ = 0;  ///< rounds whose slot this rank has published
};

}  // namespace argosy::transport
