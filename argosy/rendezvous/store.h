#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/deadline.h"

namespace argosy::rendezvous {

/// A member that announced itself and is present.
struct Member {
  std::string name{};  ///< "rank/3"
  std::string note{};  ///< what it said last, see Presence::note()
};

/// A member that announced itself and is gone.
struct Departure {
  std::string member{};
  bool lost = false;   ///< true: its process or connection ended without leave()
  std::string note{};  ///< what it said in leave(), or the last note() before it was lost
};

/// Proof of life of one member, held for as long as this object lives. See Store::announce().
class Presence {
 public:
  virtual ~Presence() = default;  ///< leaves with an empty note unless leave() was called
  Presence() = default;
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  Presence(Presence&&) = delete;
  Presence& operator=(Presence&&) = delete;

  /// Replaces what the others see beside this member's name ("all_reduce, seq 1041"). Cheap; may be
  /// sent later and together with newer ones.
  virtual void note(const std::string& text) = 0;
  /// Says goodbye: this member is from now on a departure that is not lost. Idempotent. Waits until
  /// the others know it, or the deadline passes: then it may count as lost.
  virtual void leave(const std::string& note, const Deadline& deadline) = 0;
  void leave(const std::string& note) { leave(note, Deadline::after(std::chrono::seconds(5))); }
};

/// Where processes meet: small values by key, with waiting, shared by all ranks of a job.
///
///     store->set("addr/0", address, Deadline::after(30s));
///     std::string peer = store->get("addr/1", Deadline::after(30s));  // waits until it is set
///
/// Thread-safe. Keys are non-empty and hold any bytes but NUL and newline; values hold any bytes,
/// 16 MiB at most. Errors: TimeoutError when the deadline passes; RendezvousError when the store
/// cannot be reached any more (it names the endpoint), refuses the job token, or a key is malformed
/// (UsageError).
class Store {
 public:
  virtual ~Store() = default;
  Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  Store(Store&&) = delete;
  Store& operator=(Store&&) = delete;

  virtual void set(const std::string& key, const std::string& value, const Deadline& deadline) = 0;
  /// Waits until the key exists.
  [[nodiscard]] virtual std::string get(const std::string& key, const Deadline& deadline) = 0;
  /// Waits until all keys exist; the TimeoutError names those that do not.
  virtual void wait(const std::vector<std::string>& keys, const Deadline& deadline) = 0;
  /// Adds to a decimal counter that starts at 0 and returns the sum. Atomic.
  virtual int64_t add(const std::string& key, int64_t amount, const Deadline& deadline) = 0;
  /// Writes `desired` if the value is `expected`, or if the key is absent and `expected` is empty.
  /// Returns the value afterwards ("" if absent). Atomic. Source: c10d Store::compareSet.
  virtual std::string compare_set(const std::string& key,
                                  const std::string& expected,
                                  const std::string& desired,
                                  const Deadline& deadline) = 0;
  /// Whether all keys exist, without waiting.
  [[nodiscard]] virtual bool check(const std::vector<std::string>& keys,
                                   const Deadline& deadline) = 0;
  /// Forgets the key, and the departure of a member of this name. Returns whether the key existed.
  virtual bool remove(const std::string& key, const Deadline& deadline) = 0;
  /// Keys that start with `prefix`, sorted; relative to a prefix store's own prefix.
  [[nodiscard]] virtual std::vector<std::string> keys(const std::string& prefix,
                                                      const Deadline& deadline) = 0;

  /// Announces this process as `member` ("rank/3"), for as long as the returned object lives. When
  /// the process ends without leave() — killed, crashed, its machine gone — the member becomes a
  /// lost departure, seen by everybody within a second (of the connection's end).
  /// Errors: RendezvousError when the member is present already.
  [[nodiscard]] virtual std::unique_ptr<Presence> announce(const std::string& member,
                                                           const Deadline& deadline) = 0;
  /// Members that start with `prefix` and departed, in the order in which that was noticed: the
  /// first lost one is the cause, later ones may be its consequence.
  [[nodiscard]] virtual std::vector<Departure> departures(const std::string& prefix,
                                                          const Deadline& deadline) = 0;
  /// Members that start with `prefix` and are present, sorted.
  [[nodiscard]] virtual std::vector<Member> members(const std::string& prefix,
                                                    const Deadline& deadline) = 0;

  /// The clock of whoever hosts the store, in microseconds since 1970; where nobody does, this
  /// machine's.
  [[nodiscard]] virtual int64_t time_us(const Deadline& deadline);

  /// "grpc://10.0.0.1:29400", "file:///tmp/x": for messages.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// This machine's clock, in microseconds since 1970.
[[nodiscard]] int64_t local_time_us();

/// A view of `store` in which every key and member starts with `prefix` + "/".
[[nodiscard]] std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> store, std::string prefix);

/// A store for the threads of one process (tests). See in_process_store.h to simulate a death.
[[nodiscard]] std::shared_ptr<Store> in_process_store();

}  // namespace argosy::rendezvous
