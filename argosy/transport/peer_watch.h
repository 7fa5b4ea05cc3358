#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
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
#include "argosy/transport/link_errors.h"
#include "argosy/transport/progress.h"

namespace argosy::transport {

struct PeerWatchOptions {
  std::string transport{};  ///< "gloo", for messages
  std::string group{};      ///< name of the group, for messages
  /// The rank in the job of each rank of the group. Empty: the numbers are the same.
  std::vector<int> world_ranks{};
  /// The store in which the ranks of the job are members "rank/<number>". It knows which ranks died
  /// before they came to this group. May be null.
  std::shared_ptr<rendezvous::Store> job{};
  /// The world rank of each number in `job`. Empty: the numbers are the world ranks.
  std::vector<int> job_ranks{};
  /// After a connection broke: how long to ask the store who died. After a timeout: how long the
  /// other ranks may take to say that they wait too.
  std::chrono::milliseconds patience = std::chrono::seconds(1);
  /// Called on the watch's thread when a rank is known to be gone while an operation waits. It must
  /// make that operation fail: sockets do not always tell (a host that lost its power).
  std::function<void()> interrupt{};
  /// Returns true when the kernel says that the process of a rank of the group has ended. Empty:
  /// the kernel cannot be asked. That a rank lost its connection to the store proves nothing.
  std::function<bool(int rank)> has_ended{};
};

/// An operation of this rank, as errors name it.
struct Attempt {
  const char* op = "";
  int64_t seq = -1;  ///< number of the collective in its group; -1: the operation is a message
  std::chrono::milliseconds timeout{0};
  int peer = -1;  ///< the other end of a message, which is to blame; -1: a collective
};

class Inquest;

/// The presence of this rank in the store of its group. The watch announces `rank/<r>`, keeps a
/// note of what this rank does, looks for ranks that are gone while an operation waits, and turns a
/// broken connection or a deadline into the CommError or TimeoutError that names the first cause.
///
/// A rank that fails declares itself a victim, and names the culprit, before its connections close.
/// So nobody takes the consequence for the cause. See docs/design/transport.md.
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

  /// A collective starts. Returns its number in this group, which `call` gets unless it has one.
  /// Cost: a mutex.
  int64_t begin(Call& call);
  /// The collective ended.
  void end();
  /// A wait for a message starts and ends. It has no number, but is watched like a collective.
  using Message = std::multiset<Deadline::Clock::time_point>::iterator;
  [[nodiscard]] Message begin_message();
  void end_message(Message message);

  /// Throws the cause when the group failed before, or a CommError when leave() was called.
  void check(const char* op);
  /// True if the store knows of a rank that is gone for a reason that breaks the group.
  [[nodiscard]] bool someone_is_gone() const;

  /// Returns a rank that left in peace before the end of collective `seq`, or, where `peer` is a
  /// rank, whether that one left at all. nullopt: none is known to have. For transports whose links
  /// do not tell. Blocks: one question to the store.
  [[nodiscard]] std::optional<int> who_left(int64_t seq, int peer = -1) const;

  // After a failure. Each of these finds the culprit, declares this rank a victim and returns
  // the exception to throw. Called again, they return the first one that was found.

  /// A link broke.
  std::exception_ptr link_broken(const Attempt& what, const LinkBroken& broken);
  /// This rank is to blame, and says why.
  std::exception_ptr failed_here(const Attempt& what, const OwnFault& fault);
  /// The deadline passed. To blame are the ranks that did not reach the collective; for a message,
  /// the rank at the other end.
  std::exception_ptr timed_out(const Attempt& what, const LinkTimeout& late);
  /// The ranks called one operation differently. Nobody died, and all are told.
  std::exception_ptr mismatched(const Attempt& what, const Mismatch& mismatch);

  /// Leaves the group in peace. Idempotent.
  void leave();
  /// Gives the presence away, so that tests with threads can lose it as a death would.
  [[nodiscard]] std::unique_ptr<rendezvous::Presence> take_presence();

 private:
  void run();
  void publish(const Progress& progress);
  void publish_failure(const Attempt& what);
  [[nodiscard]] Progress progress();
  /// Whether a failure needs no other cause once this rank has left.
  enum class ByLeaving : uint8_t { kExplained, kNotExplained };
  template <typename Search>
  std::exception_ptr settle(const Attempt& what, ByLeaving leaving, Search search);

  const std::shared_ptr<rendezvous::Store> store_;
  const PeerWatchOptions options_;
  const std::unique_ptr<const Inquest> inquest_;

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
