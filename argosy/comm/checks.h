#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "argosy/base/check.h"
#include "argosy/comm/group.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/operation.h"

// What every operation checks first; torch-free.
namespace argosy::comm {

/// The group's state, when `op` may be called on it now. Errors: UsageError.
inline GroupState& usable(const Group& group, std::string_view op) {
  GroupState& state = group.state();
  state.check_usable(op);
  return state;
}

inline void check_root(std::string_view op, const GroupState& state, int root) {
  ARGOSY_CHECK(root >= 0 && root < state.size(),
               place(op),
               "root {} is not in group \"{}\": expected 0 to {}",
               root,
               state.options().name,
               state.size() - 1);
}

/// An operation without a tensor of its own; `root`: where there is one.
inline OperationInfo describe(const GroupState& state,
                              std::string_view op,
                              int64_t bytes = 0,
                              int root = -1) {
  OperationInfo info{.op = op, .bytes = bytes};
  if (state.options().checked) {
    info.signature = root < 0 ? std::string(op) : fmt::format("{} root {}", op, root);
  }
  return info;
}

}  // namespace argosy::comm
