#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"

namespace argosy::rendezvous {

/// How the presence of a member ended.
enum class Parting {
  kLeft,  ///< it called leave()
  kLost,  ///< its process or its connection ended without leave()
};

/// A member that announced itself and is present.
struct Member {
  std::string name{};  ///< "rank/3"
  std::string note{};  ///< its last Presence::note()
};

/// A member that had announced itself and is gone.
struct Departure {
  std::string member{};
  bool lost = false;   ///< true: its process or connection ended without leave()
  std::string note{};  ///< the text of its leave(), or its last note() when it was lost
};

/// Shows the others that one member lives, for as long as this object exists. See
/// Store::announce().
class Presence {
 public:
  virtual ~Presence() = default;  ///< leaves with an empty note unless leave() was called
  Presence() = default;
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  Presence(Presence&&) = delete;
  Presence& operator=(Presence&&) = delete;

  /// Replaces the text that the others see beside this member's name ("all_reduce, seq 1041").
  /// Cheap: it may be sent later, together with newer ones.
  virtual void note(const std::string& text) = 0;
  /// Leaves: this member becomes a departure that is not lost. Idempotent.
  ///
  /// Blocks: until the others know it. After the deadline the member may count as lost.
  virtual void leave(const std::string& note, const Deadline& deadline) = 0;
  void leave(const std::string& note) { leave(note, Deadline::after(std::chrono::seconds(5))); }
};

/// Where the ranks of a job meet. It holds small values by key, and a rank can wait for a key.
///
///     store->set("addr/0", address, Deadline::after(30s));
///     std::string peer = store->get("addr/1", Deadline::after(30s));  // waits until it is set
///
/// Thread-safe. Keys are non-empty and hold any bytes but NUL and newline; values hold any bytes,
/// 16 MiB at most.
/// Errors: TimeoutError when the deadline passes; RendezvousError naming the endpoint when the
/// store cannot be reached any more or refuses the job token; UsageError when a key is malformed.
class Store {
 public:
  virtual ~Store() = default;
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&&) = delete;
  Store& operator=(Store&&) = delete;

  virtual void set(const std::string& key, const std::string& value, const Deadline& deadline) = 0;
  /// Returns the value. Blocks: until the key exists.
  [[nodiscard]] virtual std::string get(const std::string& key, const Deadline& deadline) = 0;
  /// Blocks: until all keys exist. The TimeoutError names those that do not.
  virtual void wait(const std::vector<std::string>& keys, const Deadline& deadline) = 0;
  /// Adds to a decimal counter that starts at 0. Returns the sum. Atomic.
  virtual int64_t add(const std::string& key, int64_t amount, const Deadline& deadline) = 0;
  /// Writes `desired` if the value is `expected`, or if the key is absent and `expected` is empty.
  /// Returns the value afterwards ("" if absent). Atomic. Source: c10d Store::compareSet.
  virtual std::string compare_set(const std::string& key,
                                  const std::string& expected,
                                  const std::string& desired,
                                  const Deadline& deadline) = 0;
  /// True if all keys exist. Does not wait.
  [[nodiscard]] virtual bool check(const std::vector<std::string>& keys,
                                   const Deadline& deadline) = 0;
  /// Removes the key, and the departure of a member of this name. True if the key existed.
  virtual bool remove(const std::string& key, const Deadline& deadline) = 0;
  /// Returns the keys that start with `prefix`, sorted. A prefix store leaves its own prefix out.
  [[nodiscard]] virtual std::vector<std::string> keys(const std::string& prefix,
                                                      const Deadline& deadline) = 0;

  /// Announces this process as `member` ("rank/3"), for as long as the returned object lives. When
  /// the process ends without leave() (killed, crashed, its machine gone), the member becomes a
  /// lost departure, which all see within a second after its connection ended. Errors:
  /// RendezvousError when the member is present already.
  [[nodiscard]] virtual std::unique_ptr<Presence> announce(const std::string& member,
                                                           const Deadline& deadline) = 0;
  /// Returns the departures of members that start with `prefix`, in the order in which the store
  /// noticed them. The first lost one is the cause; later ones may be its consequence.
  [[nodiscard]] virtual std::vector<Departure> departures(const std::string& prefix,
                                                          const Deadline& deadline) = 0;
  /// Returns the members that start with `prefix` and are present, sorted.
  [[nodiscard]] virtual std::vector<Member> members(const std::string& prefix,
                                                    const Deadline& deadline) = 0;

  /// Returns the clock of the process that hosts the store, in microseconds since 1970. Where no
  /// process does, it is this machine's clock.
  [[nodiscard]] virtual int64_t time_us(const Deadline& deadline);

  /// Returns the world rank of the process that hosts the store. -1: no rank does, or it is not
  /// known.
  [[nodiscard]] virtual int host_rank() const { return -1; }

  /// Returns "grpc://10.0.0.1:29400" or "file:///tmp/x", for messages.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Returns this machine's clock, in microseconds since 1970.
[[nodiscard]] int64_t local_time_us();

/// Returns a view of `store` in which every key and member starts with `prefix` + "/".
[[nodiscard]] std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> store, std::string prefix);
/// The same, where the process of world rank `host_rank` hosts `store`.
[[nodiscard]] std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> store,
                                                  std::string prefix,
                                                  int host_rank);

/// Returns a store for the threads of one process, for tests. See in_process_store.h to simulate a
/// death.
[[nodiscard]] std::shared_ptr<Store> in_process_store();

}  // namespace argosy::rendezvous
