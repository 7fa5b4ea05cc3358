#pragma once

#include <functional>
#include <memory>
#include <string>

#include "argosy/rendezvous/store.h"

namespace argosy::test {

/// The store `inner`, but before a rank publishes an address `visit` is called with it: then all of
/// its ports listen, and no peer knows them yet. Returns what is published instead.
[[nodiscard]] std::shared_ptr<rendezvous::Store> besieged_store(
    std::shared_ptr<rendezvous::Store> inner,
    std::function<std::string(const std::string& address)> visit);

}  // namespace argosy::test
