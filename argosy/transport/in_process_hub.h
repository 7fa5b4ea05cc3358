#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/transport/call.h"
#include "argosy/transport/rank_names.h"

// Internal to the room: where the threads of an in-process transport meet.
namespace argosy::transport {

struct Parts;
struct TreeBuffers;

/// What a rank shows the others during one collective.
struct Contribution {
  Call call{};  ///< equal on all ranks, or nobody reads anything
  const void* input = nullptr;
  const TreeBuffers* tree = nullptr;
  const Parts* sends = nullptr;
  const Parts* agreed = nullptr;  ///< the parts of `call`, for messages; may be null
};

/// One side of a message. It ends when `done` is set, also when it is refused.
struct Message {
  const void* from = nullptr;
  void* to = nullptr;
  size_t bytes = 0;
  bool done = false;
  bool refused = false;  ///< the sizes of the two sides differ
};

/// Thread-safe. Throws LinkBroken, LinkTimeout and Mismatch.
class Hub final {
 public:
  using Key = std::tuple<int, int, uint32_t>;  ///< source, destination, tag
  using Work = std::function<void(const std::vector<Contribution>&)>;

  Hub(int size, RankNames names);

  [[nodiscard]] uint64_t id() const { return id_; }
  /// Returns the hub that another thread made; nullptr when it is gone.
  [[nodiscard]] static std::shared_ptr<Hub> find(uint64_t id);
  [[nodiscard]] static std::shared_ptr<Hub> make(int size, const RankNames& names);

  /// Waits until all ranks contributed, does this rank's share of the work, and returns when all
  /// have done theirs. So memory is read only while its owner is inside.
  void collective(int rank, const Contribution& mine, const Deadline& deadline, const Work& work);

  void post_send(const Key& key, const std::shared_ptr<Message>& message);
  void post_recv(const Key& key, const std::shared_ptr<Message>& message);
  void await(const Key& key,
             int self,
             const std::shared_ptr<Message>& message,
             const Deadline& deadline);
  /// Forgets a message, whose memory is no longer valid.
  void withdraw(const Key& key, const std::shared_ptr<Message>& message);

  /// This rank takes no part any more. Operations that need it fail.
  void leave(int rank);

 private:
  using Queue = std::deque<std::shared_ptr<Message>>;

  void arrive(int rank, const Contribution& mine, const Deadline& deadline);
  void finish();
  void check_present(std::unique_lock<std::mutex>& lock) const;
  [[nodiscard]] std::string disagreement() const;
  void post(std::map<Key, Queue>& others,
            std::map<Key, Queue>& own,
            const Key& key,
            const std::shared_ptr<Message>& message);

  const uint64_t id_;
  const int size_;
  const RankNames names_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Contribution> contributions_;
  std::vector<bool> here_;
  std::vector<bool> gone_;
  int arrived_ = 0;
  int finished_ = 0;
  uint64_t started_ = 0;  ///< collectives in which all ranks have arrived
  uint64_t ended_ = 0;    ///< collectives that all ranks have finished
  std::string refused_;   ///< why the collective `started_` is refused, if it is
  std::map<Key, Queue> sends_;
  std::map<Key, Queue> recvs_;
};

}  // namespace argosy::transport
