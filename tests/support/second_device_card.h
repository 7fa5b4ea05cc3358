#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/late_queue.h"
#include "tests/support/stream_order.h"

namespace argosy::test {

/// Memory of a card; see Card.
struct Block {
  void* host = nullptr;
  size_t bytes = 0;
  int card = 0;
  int64_t stream = 0;           ///< it was allocated for
  std::set<int64_t> used_by{};  ///< other streams, as record_stream() said
  Uses uses{};                  ///< by works; of the StreamOrder
};

/// A card of the second device: streams that are late, and memory by a caching allocator.
///
/// As CUDA's: a block that was freed is the next one's of that size in its stream at once, whatever
/// still runs in others, unless these were recorded. Memory that was allocated is NaN when the
/// stream comes to it.
///
/// Thread-safe. One for each card and process: a child of fork() finds new ones.
class Card final {
 public:
  static Card& number(int index);

  [[nodiscard]] LateQueue& stream(int64_t id);
  /// Returns the newest work of a stream.
  [[nodiscard]] Moment now(int64_t id);
  [[nodiscard]] Block* allocate(size_t bytes, int64_t stream);
  void free(Block* block);
  void use(Block* block, int64_t stream);
  /// The block that an address of the host lies in; nullptr: in none.
  [[nodiscard]] static Block* block_at(const void* host);
  /// Throws what work of a stream threw that has ended, and for work that should have waited.
  void throw_error();

 private:
  explicit Card(int index) : index_(index) {}
  struct Waiting {
    Block* block;
    std::vector<Moment> until;
  };
  void reclaim();
  static std::map<int, std::unique_ptr<Card>>& all();

  int index_;
  std::mutex mutex_;
  std::atomic<bool> ended_{false};  // with the program: tensors of statics come later
  std::map<int64_t, std::unique_ptr<LateQueue>> streams_;
  std::map<std::pair<int64_t, size_t>, std::vector<Block*>> free_;  // by stream and size
  std::vector<Waiting> waiting_;
};

}  // namespace argosy::test
