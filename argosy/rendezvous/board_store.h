#pragma once

#include <memory>
#include <string>

#include "argosy/rendezvous/board.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// A Board as a Store for the threads of this process. `description` is what describe() returns.
[[nodiscard]] std::shared_ptr<Store> board_store(std::shared_ptr<Board> board,
                                                 std::string description);

}  // namespace argosy::rendezvous
