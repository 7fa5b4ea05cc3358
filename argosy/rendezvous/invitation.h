#pragma once

#include <functional>
#include <memory>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"
#include "argosy/rendezvous/tls.h"

namespace argosy::rendezvous {

/// How ranks find our store through a store of others (torchrun's, PyTorch's): one rank hosts ours
/// on a port that the system chooses, and leaves there an invitation, which the others follow.
struct InvitationOptions {
  std::string where{};    ///< "rendezvous.torchrun": of errors
  std::string foreign{};  ///< "torchrun's store": where the invitation lies, for messages
  /// A host that all ranks reach, such as the foreign store's. Empty: none is known.
  std::string towards{};
  /// The interface ("eth0"), or an address of it, by which the others reach this host, where
  /// `towards` does not tell. Empty: the first one, and the store listens on all.
  std::string interface {};
  std::string token{};  ///< the job's secret; empty: the invitation has one
  TlsChoice tls{};
};

/// A store of this process, and the words that lead to it.
struct OpenHouse {
  std::shared_ptr<Store> store{};  ///< lives as host_store() says
  std::string invitation{};        ///< without a newline; a secret, where the job has none
};

/// Hosts a store. Errors: RendezvousError.
[[nodiscard]] OpenHouse invite(const InvitationOptions& options);

/// Connects to where `read` says, which waits for the invitation. It may be what a former process
/// has left, so it is read again as long as nobody answers. Errors: RendezvousError when our store
/// cannot be reached; what `read` throws.
[[nodiscard]] std::shared_ptr<Store> follow(const InvitationOptions& options,
                                            const std::function<std::string()>& read,
                                            const Deadline& deadline);

}  // namespace argosy::rendezvous
