#pragma once

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "argosy/comm/buffer.h"
#include "argosy/comm/checks.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/operation.h"
#include "argosy/comm/work.h"

namespace argosy::comm {

/// Which way an operation takes: on the device of its tensors, or through the host's memory.
struct Route {
  std::shared_ptr<DeviceLine> line{};
  Medium medium{};
};
/// Collective the first time that the group has a tensor of this device.
[[nodiscard]] Route route_of(GroupState& state, const at::Tensor& tensor);

/// A checked collective that is ready to be queued, or run at once.
struct Call {
  GroupState& state;
  std::chrono::milliseconds timeout;
  OperationInfo info;
  Operation::Body body;
  Route route{};

  [[nodiscard]] Work submit() && {
    return route.line != nullptr
               ? state.submit_on(*route.line, std::move(info), timeout, std::move(body))
               : state.submit(std::move(info), timeout, std::move(body));
  }
  void run() && {
    if (route.line != nullptr) {
      std::move(*this).submit().wait();
    } else {
      state.run(std::move(info), timeout, std::move(body));
    }
  }
};

/// `detail`: what the ranks must agree on beside operation, dtype and shape ("sum", "root 0").
/// Formatted in the checked mode only.
template <typename... Args>
OperationInfo describe(const GroupState& state,
                       std::string_view op,
                       const at::Tensor& tensor,
                       const Buffer& buffer,
                       fmt::format_string<Args...> detail,
                       Args&&... args) {
  OperationInfo info{
      .op = op, .dtype = dtype_name(tensor), .elements = tensor.numel(), .bytes = buffer.bytes()};
  if (state.options().checked) {
    const std::string more = fmt::format(detail, std::forward<Args>(args)...);
    info.signature = fmt::format(
        "{} {} {}{}{}", op, info.dtype, shape_text(tensor), more.empty() ? "" : " ", more);
  }
  return info;
}

}  // namespace argosy::comm
