#pragma once

#include <functional>
#include <optional>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"
#include "argosy/transport/peer_watch.h"
#include "argosy/transport/rank_names.h"

namespace argosy::transport {

/// What a rank tells the others of its group, and hears from them, while all connect. The words go
/// through the group's store. A rank that waits also learns that another one died or left.
///
/// Lifetime: refers to the transport's store, watch and names.
class Lobby final {
 public:
  Lobby(rendezvous::Store& store, PeerWatch& watch, const RankNames& names)
      : store_(store), watch_(watch), names_(names) {}

  /// Sets `key` for the other ranks. Errors: those of Store::set().
  void tell(const std::string& key, const std::string& value, const Deadline& deadline) const;
  /// Returns the value of `key`; nullopt when nobody has set it yet.
  [[nodiscard]] std::optional<std::string> heard(const std::string& key,
                                                 const Deadline& deadline) const;
  /// Returns the value of `key`, which rank `teller` sets.
  ///
  /// Blocks: until the key is there.
  /// Errors: LinkTimeout naming `teller`; LinkBroken when a rank is gone or the store fails; what
  /// `meanwhile` throws, which is called now and then.
  [[nodiscard]] std::string await(
      const std::string& key,
      int teller,
      const Deadline& deadline,
      const std::function<void()>& meanwhile = [] {}) const;
  /// Throws LinkBroken when a rank of the group died or left.
  void look_around() const;

  /// What the store says of itself: "grpc://node1:29400#…".
  [[nodiscard]] std::string address() const { return store_.describe(); }
  /// How messages call the ranks.
  [[nodiscard]] const RankNames& names() const { return names_; }

 private:
  rendezvous::Store& store_;
  PeerWatch& watch_;
  const RankNames& names_;
};

}  // namespace argosy::transport
