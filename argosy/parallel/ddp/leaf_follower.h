#pragma once

#include <cstdint>
#include <memory>

#include "argosy/comm/collectives.h"

namespace argosy::parallel::ddp {

/// Somebody who has something of each virtual rank: an optimizer whose ranks train apart. A wrapper
/// tells it whose passes follow.
class LeafFollower {
 public:
  LeafFollower() = default;
  virtual ~LeafFollower() = default;
  LeafFollower(const LeafFollower&) = delete;
  LeafFollower& operator=(const LeafFollower&) = delete;
  LeafFollower(LeafFollower&&) = delete;
  LeafFollower& operator=(LeafFollower&&) = delete;

  /// The passes of this process's virtual rank `leaf` follow, in its own state.
  virtual void begin_leaf(int64_t leaf) = 0;
  /// The passes of the update are done, or were left.
  virtual void end_passes() noexcept = 0;
  /// Which virtual ranks the processes have: at once, and where that changes. Errors: UsageError
  /// where it cannot follow.
  virtual void deal_to(const std::shared_ptr<const comm::LeafDeal>& deal) = 0;
};

}  // namespace argosy::parallel::ddp
