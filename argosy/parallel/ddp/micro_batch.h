#pragma once

#include <cstdint>

namespace argosy::parallel {

/// A micro-batch of a virtual rank, to which the forward and backward passes that follow belong.
///
/// An update of the optimizer needs `micros` micro-batches of each virtual rank. A process goes
/// through its virtual ranks in their order, and through the micro-batches of each in turn.
struct MicroBatch {
  int64_t leaf = 0;    ///< which of this process's virtual ranks
  int64_t leaves = 1;  ///< how many it has
  int64_t micro = 0;   ///< which micro-batch of the virtual rank in this update
  int64_t micros = 1;  ///< how many there are
  /// The epoch, and the update's first batch of each virtual rank in it; -1: not known. If they
  /// are known, ranks compare them.
  int64_t epoch = -1;
  int64_t update = -1;
  /// Parameters may not change before the update has ended, although it is the only one here: on
  /// fewer processes it would not be.
  bool strict = false;

  [[nodiscard]] bool begins_leaf() const { return micro == 0; }
  [[nodiscard]] bool ends_leaf() const { return micro + 1 == micros; }
  [[nodiscard]] bool begins_update() const { return begins_leaf() && leaf == 0; }
  [[nodiscard]] bool is_of_last_leaf() const { return leaf + 1 == leaves; }
};

}  // namespace argosy::parallel
