#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/rendezvous/store.h"

/// For tests: the stores that one suite runs over.
namespace argosy::rendezvous {

/// `world()` makes a new, empty meeting place; each call of what it returns is one more party in
/// it (another client, another opened folder).
struct StoreKind {
  std::string name{};
  std::function<std::function<std::shared_ptr<Store>()>()> world{};
};
inline std::ostream& operator<<(std::ostream& out, const StoreKind& kind) {
  return out << kind.name;
}

[[nodiscard]] std::vector<StoreKind> store_kinds();
[[nodiscard]] std::string kind_name(const testing::TestParamInfo<StoreKind>& info);

/// Long enough for a loaded machine; a test that meets it has failed.
inline Deadline soon() {
  return Deadline::after(std::chrono::seconds(20));
}

/// Waits, bounded by soon(), until `ready()`; for what becomes visible a little later.
template <typename Ready>
bool eventually(Ready ready) {
  const Deadline deadline = soon();
  while (!ready()) {
    if (deadline.expired()) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace argosy::rendezvous
