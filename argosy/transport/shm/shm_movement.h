#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "argosy/base/result.h"
#include "argosy/transport/shared_block.h"
#include "argosy/transport/shm/blocks.h"
#include "argosy/transport/shm/rounds.h"
#include "argosy/transport/watched_transport.h"

// Internal to the room: the collectives that move data and change none, in shared memory.
namespace argosy::transport {

/// One collective of a host's ranks that moves bytes. The arguments are those of the functions of
/// the same name in WatchedTransport.
class ShmMovement final {
 public:
  /// `rounds`: an operation that nothing has used yet.
  explicit ShmMovement(const Rounds::Operation& rounds) : rounds_(rounds) {}

  void barrier();
  void broadcast(void* data, int64_t bytes, int root);
  void all_gather(const void* input, void* output, const Parts& parts);
  void gather(const void* input, void* output, int64_t bytes, int root);
  void scatter(const void* input, void* output, int64_t bytes, int root);
  void all_to_all(const void* input, const Parts& sends, void* output, const Parts& receives);
  /// Adds a block to `blocks`; nullptr, on every rank, where one of them has no room for it.
  [[nodiscard]] std::shared_ptr<SharedBlock> share(size_t bytes, Blocks& blocks);

 private:
  static constexpr int kNobody = -2;
  static constexpr int kAll = -1;

  /// Takes `rounds` more rounds. `put(i, slot)` fills this rank's slot in the i-th of them;
  /// `take(rank, i, slot)` reads the slot of `from`: one rank, kAll other ranks or kNobody.
  void exchange(int64_t rounds,
                int from,
                const std::function<void(int64_t, std::byte*)>& put,
                const std::function<void(int, int64_t, const std::byte*)>& take);
  [[nodiscard]] bool all_well(const Status& mine);
  [[nodiscard]] int64_t longest_part(const Parts& sends, const Parts& receives);

  Rounds::Operation rounds_;
  int64_t taken_ = 0;  ///< rounds that exchange() has used
};

}  // namespace argosy::transport
