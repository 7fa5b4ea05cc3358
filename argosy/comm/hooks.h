#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>

#include "argosy/comm/group.h"

namespace argosy::comm {

/// One operation, as a hook sees it. Views are valid only during the call, except `op` and `dtype`,
/// which are literals.
struct OperationEvent {
  uint64_t id = 0;           ///< counts the operations of a world and its sub-groups, from 0
  std::string_view group{};  ///< "world"
  int64_t seq = -1;  ///< place in the group's order; transfers (send, recv) count on their own, and
                     ///< "new_group", the making of a group together, has none
  std::string_view op{};     ///< "all_reduce"
  std::string_view dtype{};  ///< "f32"; empty without a type
  int64_t elements = 0;
  int64_t bytes = 0;
  int peer = -1;  ///< the other rank of a transfer
  std::chrono::steady_clock::time_point enqueued{};
  std::chrono::steady_clock::time_point started{};  ///< set from on_started on
  std::chrono::steady_clock::time_point ended{};    ///< set in on_ended
  std::string_view error{};  ///< in on_ended: the error that stopped it, or empty
};

/// Observes the operations of a group and of all groups made from it.
///
/// A hook runs on the operation's path: be quick, do not communicate and do not throw (exceptions
/// are logged and dropped). on_enqueued runs in the caller's thread, the other two in the thread
/// that runs the operation. Each operation has this order; different operations may overlap.
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
  /// Called before the operation's Work completes.
  virtual void on_ended(const OperationEvent& /*event*/) {}
};

/// Lets `hook` see the operations of `group`, of the group it was made from, and of all groups made
/// from either.
void add_hook(const Group& group, std::shared_ptr<Hook> hook);
/// Removes `hook`. Calls that have begun may still arrive.
void remove_hook(const Group& group, const std::shared_ptr<Hook>& hook);

}  // namespace argosy::comm
