#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

#include "rpc.pb.h"

namespace argosy::rpc {

/// What the workers of a job tell each other in its store. Thread-safe. Internal to the room.
class Meeting final {
 public:
  /// `job`: the store in which the ranks are present as "rank/<n>".
  Meeting(std::shared_ptr<rendezvous::Store> job, int rank, int world_size);

  /// Returns the address of this host that all others reach.
  /// Collective: waits for all workers. Errors: as await_all().
  [[nodiscard]] std::string choose_address(const Deadline& deadline);
  /// Tells the others of this worker, and waits for them.
  /// Errors: RendezvousError when another one has the name, or a worker is gone; TimeoutError
  /// naming those that did not come.
  void publish(const wire::Card& card, const Deadline& deadline);
  /// Returns which process of this rank it is, from 1: others may have died before.
  [[nodiscard]] uint32_t incarnation(const Deadline& deadline) const;
  /// True when the others had met without this process: it takes the place of one that is gone.
  [[nodiscard]] bool rejoined() const { return rejoined_; }
  /// Returns the card of the latest process of that rank.
  /// Errors: UsageError when there is no such worker.
  [[nodiscard]] wire::Card card(int rank, const Deadline& deadline);
  [[nodiscard]] int rank_of(const std::string& name, const Deadline& deadline);
  /// Waits until all have called it, or are gone. Errors: TimeoutError naming the others.
  void say_done(const Deadline& deadline);
  /// Says what became of a process of that rank: "died (…)". "": nothing is known. Looks for at
  /// most `patience`.
  [[nodiscard]] std::string what_became_of(int rank,
                                           uint32_t incarnation,
                                           std::chrono::milliseconds patience) const;

 private:
  /// Whether a worker that is gone is one less to wait for, or one too few.
  enum class Gone { kExcused, kMissed };
  void await_all(const std::string& what, Gone gone, const Deadline& deadline);
  [[nodiscard]] std::set<int> gone_ranks(const Deadline& deadline);
  [[nodiscard]] std::vector<int> missing(const std::string& what, const Deadline& deadline) const;
  [[nodiscard]] std::vector<rendezvous::Departure> departures(int rank,
                                                              const Deadline& deadline) const;
  [[nodiscard]] std::string look_for(int rank,
                                     uint32_t incarnation,
                                     const Deadline& deadline) const;

  const std::shared_ptr<rendezvous::Store> job_;
  const std::shared_ptr<rendezvous::Store> store_;
  const int rank_;
  const int world_size_;
  bool rejoined_ = false;
};

}  // namespace argosy::rpc
