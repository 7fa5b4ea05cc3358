#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/ps/partition.h"
#include "argosy/ps/partition_save.h"
#include "argosy/ps/requests.h"
#include "argosy/ps/views.h"
#include "argosy/rpc/agent.h"

namespace argosy::ps {

/// The server that was asked is not the primary of the partition. Workers look who is.
class NotPrimaryError final : public Error {
 public:
  explicit NotPrimaryError(const std::string& what) : Error("ps.view", what) {}
  /// Its type as another process learns it.
  static constexpr const char* kType = "argosy::ps::NotPrimaryError";
};

/// How servers reach each other.
struct ServerLinks {
  rpc::Agent* agent = nullptr;
  Views* views = nullptr;
  std::vector<std::string> servers{};  ///< names of the agents, in order
  int self = 0;

  /// Says what became of a server; "" when it lives, as far as is known.
  [[nodiscard]] std::string fate_of(int server, std::chrono::milliseconds patience) const;
};

/// One server's copy of a partition: the primary, which answers workers, or the backup.
///
/// The primary sends each push to the backup and acknowledges it when the backup has it. So a
/// server that dies takes no acknowledged push with it: the backup takes over with all of them. A
/// worker sends a push again of which it does not know; the partition knows those that it has.
///
/// Who is primary stands in the store (View). A primary that was taken for dead finds out when it
/// asks its backup, before it acknowledges anything. Thread-safe.
class Replica final {
 public:
  /// `view`: the first one.
  Replica(const TableSet& tables, const PartitionOptions& options, int self, const View& view);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;
  Replica(Replica&&) = delete;
  Replica& operator=(Replica&&) = delete;

  /// Sets the dense parameters, before any push. Errors: UsageError after one.
  void begin(std::span<const float> dense);
  /// Answers a pull, perhaps later. Errors: NotPrimaryError; UsageError for one that does not fit.
  [[nodiscard]] rpc::Later<PullReply> pull(rpc::CallContext& call, PullRequest request);
  /// Takes a push. Returns when the backup has it too, or when there is no backup.
  /// Errors: as pull().
  void push(const PushRequest& request, const ServerLinks& links);
  /// Takes what the primary has sent, in whatever order. Errors: NotPrimaryError when that is one
  /// no longer.
  void replicate(const ReplicaPush& push);
  /// Becomes the primary, if that of `epoch` is gone. Returns the view afterwards.
  /// Errors: NotPrimaryError when it is not gone, or this is not its backup.
  View take_over(uint64_t epoch, const ServerLinks& links);
  /// Looks whether the view has changed, or whom it names is gone. Called now and then.
  void look(const ServerLinks& links);

  /// Begins to write what it holds now into `folder`. Returns at once; pushes that follow change
  /// nothing of it. Errors: NotPrimaryError; UsageError while a former save is written.
  void begin_save(const std::string& folder);
  /// Returns what the last save has written, when all is. Errors: UsageError without a save.
  [[nodiscard]] rpc::Later<std::vector<ShardFile>> end_save();
  /// Puts a checkpoint in its place, before any push.
  void load(const TableFiles& saved);

  [[nodiscard]] View view() const;
  /// Returns how many pushes of the worker it has.
  [[nodiscard]] uint64_t pushes_of(uint32_t worker) const;
  [[nodiscard]] bool is_primary() const;
  /// Of each sparse table, here.
  [[nodiscard]] std::vector<std::pair<size_t, size_t>> rows_and_bytes() const;

 private:
  struct WaitingPull {
    PullRequest request{};
    rpc::Draft values{};
    rpc::Later<PullReply> reply{};
  };

  void check_primary() const;
  /// What may be answered now. With the mutex; send() without, for it may block.
  struct Answer {
    rpc::Later<PullReply> reply{};
    rpc::Draft values{};
  };
  [[nodiscard]] std::vector<Answer> take_those_that_may();
  static void send(std::vector<Answer> answers);
  void change(const PushRequest& request);
  void apply_in_order();
  void adopt(const View& view);
  /// Sends a push to the backup and waits for it.
  void keep_safe(const ReplicaPush& push, int backup, const ServerLinks& links);
  void lose_backup(const View& seen, const ServerLinks& links);

  const int self_;
  mutable std::shared_mutex mutex_;  ///< shared by pulls
  Partition partition_;
  View view_;
  uint64_t sent_ = 0;                              ///< to the backup in this epoch
  uint64_t applied_ = 0;                           ///< as the backup, in this epoch
  std::map<uint64_t, PushRequest> out_of_turn_{};  ///< came before those that precede them
  std::list<WaitingPull> waiting_{};
  std::unique_ptr<PartitionSave> save_{};  ///< the last one; its thread uses what stands above
};

}  // namespace argosy::ps
