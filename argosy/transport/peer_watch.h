#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"
#include "argosy/transport/call.h"
#include "argosy/transport/rank_names.h"

namespace argosy::transport {

struct PeerWatchOptions {
  std::string transport{};  ///< "gloo": for messages
  std::string group{};      ///< name of the group: for messages
  /// Of the members, in the order of their ranks in the group; empty: the same numbers.
  std::vector<int> world_ranks{};
  /// Where the ranks of the job are members "rank/<world rank>": tells of who died before it came
  /// to this group. May be empty.
  std::shared_ptr<rendezvous::Store> job{};
  /// How long to ask the store who died after a connection broke, and how long to let the others
  /// say that they wait too after a timeout.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
  /// Called on the watch's thread when a rank is known to be gone while an operation waits: must
  /// make that operation fail. Sockets do not always tell (a host that lost its power).
  std::function<void()> interrupt{};
  /// Whether the kernel says that the process of a rank of the group has ended; empty: nobody can
  /// ask. The end of a rank's connection to the store alone does not prove it.
  std::function<bool(int rank)> has_ended{};
};

struct Blame;
struct Muster;

/// What a rank is doing, as the others read it in the store: beside its presence while it lives.
struct Progress {
  bool inside = false;  ///< in the operation, or done with it
  int64_t seq = 0;
  std::string op{"nothing"};
  std::optional<Call> call{};    ///< of `seq`
  std::optional<Call> before{};  ///< of `seq` - 1

  /// How it called a collective, if that is known.
  [[nodiscard]] std::optional<Call> call_at(int64_t number) const;
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static std::optional<Progress> decode(const std::string& note);
};

/// Knows the ranks of one group through the group's store, and says who is to blame when an
/// operation fails: announces `rank/<r>`, keeps a note of what this rank does, and turns a broken
/// connection or a deadline into the CommError or TimeoutError that names the first cause.
///
/// A rank that fails declares itself a victim, naming the culprit, before its connections close;
/// so nobody takes the consequence for the cause. See docs/design/transport.md.
///
/// Thread-safe. Owns one thread, which sleeps while no operation runs.
class PeerWatch final {
 public:
  /// Errors: RendezvousError when the store is gone or this rank is present already.
  PeerWatch(std::shared_ptr<rendezvous::Store> store,
            int rank,
            int size,
            PeerWatchOptions options,
            const Deadline& deadline);
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;
  PeerWatch(PeerWatch&&) = delete;
  PeerWatch& operator=(PeerWatch&&) = delete;

  /// A collective starts (the number of it in this group is returned) and ends. `call` gets that
  /// number unless it has one. Cost: a mutex.
  int64_t begin(Call& call);
  void end();
  /// A wait for a message starts and ends: not numbered, but watched like a collective.
  using Message = std::multiset<Deadline::Clock::time_point>::iterator;
  [[nodiscard]] Message begin_message();
  void end_message(Message message);

  /// Throws the cause when the group failed before, or a CommError when leave() was called.
  void check(const char* op);
  /// Whether the store knows of a rank that is gone for a reason that breaks the group.
  [[nodiscard]] bool someone_is_gone();

  /// The link to `peer` broke (-1: not known which). Finds the culprit, declares this rank a victim
  /// and returns the exception to throw; the first one that was found when called again.
  std::exception_ptr link_broken(const std::string& op,
                                 int64_t seq,
                                 int peer,
                                 const std::string& reason);
  /// The deadline passed. `awaited`: ranks whose data was waited for. point-to-point: `seq` is -1,
  /// and `awaited` are to blame; otherwise who did not reach the operation is.
  std::exception_ptr timed_out(const std::string& op,
                               int64_t seq,
                               std::chrono::milliseconds timeout,
                               const std::vector<int>& awaited);

  /// The ranks called one operation with different arguments: nobody died, and all are told.
  /// `within_a_part`: looks into the ranks' notes first, see Mismatch.
  std::exception_ptr mismatched(const std::string& op,
                                int64_t seq,
                                const std::string& reason,
                                bool within_a_part);

  /// Says goodbye to the group. Idempotent.
  void leave();
  /// Gives the presence away as a death would, for tests with threads.
  [[nodiscard]] std::unique_ptr<rendezvous::Presence> take_presence();

 private:
  void run();
  void publish(const Progress& progress);
  void publish_failure(const std::string& op, int64_t seq);
  [[nodiscard]] std::optional<Muster> look();
  [[nodiscard]] std::optional<Blame> find_blame(const Muster& muster,
                                                int peer,
                                                bool accept_left) const;
  [[nodiscard]] std::string story_of_lost(int rank, const std::string& last_seen) const;
  [[nodiscard]] bool known_to_have_ended(int rank) const;
  [[nodiscard]] std::map<int, std::string> stopped() const;
  [[nodiscard]] std::optional<Blame> find_blame_in_job(
      const std::vector<rendezvous::Departure>& departures, const std::set<int>& known) const;
  [[nodiscard]] Progress progress();
  struct Findings;
  [[nodiscard]] Findings inquire(const std::string& op, int64_t seq, Findings found);
  std::exception_ptr fail_as_others(const std::string& op, int64_t seq, const Blame& blame);
  [[nodiscard]] std::string disagreement_at(int64_t seq, const Muster& muster);
  [[nodiscard]] std::vector<int> absentees(const Muster& muster,
                                           int64_t seq,
                                           std::vector<std::string>& last_words) const;
  std::exception_ptr fail(std::exception_ptr cause, const Blame& blame);
  std::exception_ptr fail_by_mismatch(const std::string& op,
                                      int64_t seq,
                                      const std::string& reason);
  [[nodiscard]] std::string where(const std::string& op) const;
  [[nodiscard]] std::string myself() const;
  [[nodiscard]] std::exception_ptr store_is_gone(const std::string& op,
                                                 int64_t seq,
                                                 const std::string& why);

  const std::shared_ptr<rendezvous::Store> store_;
  const int rank_;
  const int size_;
  const PeerWatchOptions options_;
  const RankNames names_;

  std::mutex explain_mutex_;  ///< held while a cause is looked for; the first one wins
  std::atomic<bool> failed_{false};
  std::atomic<bool> left_{false};
  std::exception_ptr cause_;  ///< guarded by explain_mutex_

  std::mutex presence_mutex_;
  std::unique_ptr<rendezvous::Presence> presence_;

  std::mutex mutex_;
  std::condition_variable changed_;
  Progress progress_;
  int64_t next_seq_ = 0;
  Deadline::Clock::time_point since_;
  std::multiset<Deadline::Clock::time_point> messages_;  ///< since when messages are waited for
  bool asleep_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace argosy::transport
