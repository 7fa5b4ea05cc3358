#include "argosy/rendezvous/in_process_store.h"

#include <utility>

#include "argosy/base/check.h"
#include "argosy/rendezvous/board_store.h"

namespace argosy::rendezvous {

std::shared_ptr<Store> in_process_store() {
  return board_store(std::make_shared<Board>(), "in-process://");
}

void lose(std::unique_ptr<Presence> presence) {
  auto* member = dynamic_cast<BoardPresence*>(presence.get());
  ARGOSY_CHECK(member != nullptr,
               "rendezvous.lose",
               "expected a presence of in_process_store(). Other stores notice a real death.");
  member->lose();
}

}  // namespace argosy::rendezvous
