#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "argosy/comm/group.h"

namespace argosy::comm {

/// One operation, as a hook sees it. Views are valid during the call only, but `op` and `dtype` are
/// literals.
struct OperationEvent {
  uint64_t id = 0;           ///< counts the operations of a world and its sub-groups, from 0
  std::string_view group{};  ///< "world"
  int64_t seq = -1;  ///< place in the group's order; transfers (send, recv) count on their own, and
                     ///< "new_group", the making of a group together, has none
  std::string_view op{};     ///< "all_reduce"
  std::string_view dtype{};  ///< "f32"; empty where there is none
  int64_t elements = 0;
  int64_t bytes = 0;
  int peer = -1;  ///< the other rank, of a transfer
  std::chrono::steady_clock::time_point enqueued{};
  std::chrono::steady_clock::time_point started{};  ///< set from on_started on
  std::chrono::steady_clock::time_point ended{};    ///< set in on_ended
  std::string_view error{};                         ///< in on_ended: what stopped it, or empty
};

/// Watches the operations of a group and of all groups made from it.
///
/// Called on the operation's path: be quick, do not communicate, do not throw (what a hook throws
/// is logged and dropped). on_enqueued comes from the caller's thread, the other two from the
/// thread that runs the operation, in this order per operation; different operations may overlap.
class Hook {
 public:
  virtual ~Hook() = default;
  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  Hook(Hook&&) = delete;
  Hook& operator=(Hook&&) = delete;

  virtual void on_enqueued(const OperationEvent& /*event*/) {}
  virtual void on_started(const OperationEvent& /*event*/) {}
  /// Before the operation's Work completes.
  virtual void on_ended(const OperationEvent& /*event*/) {}
};

/// From now on `hook` sees the operations of `group`, of the group it was made from and of all
/// groups made from either.
void add_hook(const Group& group, std::shared_ptr<Hook> hook);
/// Calls that are on their way may still arrive.
void remove_hook(const Group& group, const std::shared_ptr<Hook>& hook);

}  // namespace argosy::comm
