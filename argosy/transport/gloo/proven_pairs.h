#pragma once

#include <memory>
#include <vector>

#include "argosy/os/fd.h"

namespace gloo::transport {
class Context;
class Device;
}  // namespace gloo::transport

// Internal to the room: makes Gloo's pairs of connections that Gloo did not open.
namespace argosy::transport {

/// Makes each connection the pair of its rank in `context`, which is one of `device` (TCP).
///
/// Gloo's own pairs listen from the moment they are made, and take the first that calls. These
/// stop before Gloo can take anybody. Errors: Gloo's.
void adopt(::gloo::transport::Device& device,
           ::gloo::transport::Context& context,
           std::vector<os::UniqueFd> connections);

}  // namespace argosy::transport
