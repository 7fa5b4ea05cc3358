#pragma once

#include <exception>

#include "argosy/transport/link_errors.h"

// Internal to the room.
namespace argosy::transport::nccl {

/// Calls `body`. What it throws beside the errors of links, such as a fault of the device or
/// missing memory, becomes this rank's own fault: a part of its work may be queued, and others wait
/// for it.
template <typename Body>
auto or_own_fault(Body body) {
  try {
    return body();
  } catch (const std::exception& e) {  // those of links are none
    throw OwnFault{e.what()};
  }
}

}  // namespace argosy::transport::nccl
