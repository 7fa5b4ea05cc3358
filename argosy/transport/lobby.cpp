#include "argosy/transport/lobby.h"

#include "argosy/base/error.h"
#include "argosy/transport/link_errors.h"

namespace argosy::transport {
namespace {

/// How long a rank waits for a key before it looks whether another rank is gone.
constexpr std::chrono::milliseconds kLobbySlice{200};

}  // namespace

void Lobby::tell(const std::string& key, const std::string& value, const Deadline& deadline) const {
  store_.set(key, value, deadline);
}

std::optional<std::string> Lobby::heard(const std::string& key, const Deadline& deadline) const {
  return store_.check({key}, deadline) ? std::optional(store_.get(key, deadline)) : std::nullopt;
}

std::string Lobby::await(const std::string& key,
                         int teller,
                         const Deadline& deadline,
                         const std::function<void()>& meanwhile) const {
  for (;;) {
    meanwhile();
    try {
      return store_.get(key, deadline.sooner(Deadline::after(kLobbySlice)));
    } catch (const TimeoutError&) {
      if (watch_.someone_is_gone()) {
        throw LinkBroken{-1, names_.one(teller) + " did not come"};
      }
      if (deadline.expired()) {
        throw LinkTimeout{{teller}};
      }
    } catch (const RendezvousError& e) {
      throw LinkBroken{-1, e.what()};
    }
  }
}

void Lobby::look_around() const {
  if (watch_.someone_is_gone()) {
    throw LinkBroken{-1, "not all ranks came"};
  }
}

}  // namespace argosy::transport
