#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// How a wait on a Board ended.
struct Wakeup {
  bool closed = false;  ///< the board closed before the keys existed
  std::string value{};  ///< of the last key waited for, unless closed
};

/// The state of a store in memory: keys, the callers that wait for them, members and departures.
/// The in-process store and the gRPC service give access to it.
///
/// Nothing here blocks. A caller that waits leaves a function, so 512 waiting ranks cost no thread.
/// The functions are called without the lock held, on the thread that set the key. Its two users
/// check keys; here all keys count as valid.
///
/// Thread-safe. After close() every operation throws RendezvousError.
class Board final {
 public:
  using Wake = std::function<void(Wakeup)>;

  void set(const std::string& key, const std::string& value);
  int64_t add(const std::string& key, int64_t amount);
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired);
  bool remove(const std::string& key);
  [[nodiscard]] std::vector<std::string> missing(const std::vector<std::string>& keys) const;
  [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;

  /// Calls `wake` exactly once, unless forget() comes first: when all keys exist at the same moment
  /// (perhaps before this returns) or when the board closes. `keys` must not be empty. Returns a
  /// number for forget().
  uint64_t when_all(std::vector<std::string> keys, Wake wake);
  /// True if the function was not called and never will be.
  bool forget(uint64_t waiter);
  [[nodiscard]] size_t waiting() const;

  /// Makes `member` present. Returns a number for note() and depart().
  /// Errors: RendezvousError when it is present already.
  uint64_t arrive(const std::string& member);
  void note(uint64_t presence, const std::string& text);
  /// Turns a presence into a departure. Without `note`, the last note() is kept. Does nothing when
  /// it is a departure already. Allowed after close().
  void depart(uint64_t presence, Parting parting, const std::optional<std::string>& note);
  [[nodiscard]] std::vector<Departure> departures(const std::string& prefix) const;
  [[nodiscard]] std::vector<Member> members(const std::string& prefix) const;

  /// Calls `closing` once when the board closes, unless forget() comes first.
  uint64_t when_closed(std::function<void()> closing);
  /// Wakes all waiters with `closed`. Idempotent.
  void close();

 private:
  struct Waiter {
    std::vector<std::string> keys{};
    size_t next = 0;  ///< keys before this one existed when last looked at
    Wake wake{};
  };
  struct Due {
    Wake wake{};
    Wakeup wakeup{};
  };

  void check_open() const;
  std::vector<Due> write(const std::string& key, const std::string& value);
  std::optional<Due> advance(uint64_t id);

  mutable std::mutex mutex_;
  bool closed_ = false;
  std::map<std::string, std::string> values_;
  uint64_t last_id_ = 0;
  std::unordered_map<uint64_t, Waiter> waiters_;
  std::unordered_map<std::string, std::vector<uint64_t>> waiting_for_;  ///< waiters by missing key
  std::unordered_map<uint64_t, std::function<void()>> closers_;
  std::map<std::string, uint64_t> present_;
  std::unordered_map<uint64_t, Member> members_;
  std::vector<Departure> departures_;
};

}  // namespace argosy::rendezvous
