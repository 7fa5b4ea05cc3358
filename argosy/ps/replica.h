#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/ps/order_log.h"
#include "argosy/ps/partition.h"
#include "argosy/ps/partition_copy.h"
#include "argosy/ps/requests.h"
#include "argosy/ps/table_files.h"
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
  std::vector<std::string> workers{};  ///< likewise; empty: nobody looks what became of them
  int self = 0;

  /// Says what became of a server; "" when it lives, as far as is known.
  [[nodiscard]] std::string fate_of(int server, std::chrono::milliseconds patience) const;
  /// Returns the next server behind this one that lives, or -1 where none does; `last` only if
  /// there is no other.
  [[nodiscard]] int next_living(int last) const;
  [[nodiscard]] const std::string& name_of(int server) const {
    return servers[static_cast<size_t>(server)];
  }
  /// `patience`: of the call; 0: the agent's.
  template <typename... Arguments>
  void call(int server,
            std::chrono::milliseconds patience,
            const std::string& function,
            const Arguments&... arguments) const {
    agent->call({name_of(server), patience}, function, arguments...);
  }
};

/// What a primary tells its backup, or the server that becomes it. `stream` is what both agreed on
/// when that began: whatever carries another one is of an earlier time.
struct ReplicaPush {
  uint64_t stream = 0;
  uint64_t number = 0;  ///< of the partition's pushes in that stream, from 0
  PushRequest push{};
  auto fields() { return std::tie(stream, number, push); }
};

/// Asks a server to become the backup of a partition.
struct JoinRequest {
  uint32_t partition = 0;
  uint64_t stream = 0;
  View view{};  ///< without a backup
  auto fields() { return std::tie(partition, stream, view); }
};

/// Some of what a shard of the partition had when the stream began.
struct ReplicaShard {
  uint32_t partition = 0;
  uint64_t stream = 0;
  int shard = 0;
  uint32_t table = 0;  ///< of the rows
  SavedRows rows{};
  std::vector<DenseGiven> dense{};
  auto fields() { return std::tie(partition, stream, shard, table, rows, dense); }
};

/// The last of it.
struct ReplicaState {
  uint32_t partition = 0;
  uint64_t stream = 0;
  PartitionState state{};
  auto fields() { return std::tie(partition, stream, state); }
};

/// One server's copy of a partition: the primary, which answers workers, the backup, or none yet.
///
/// The primary sends each push to the backup and acknowledges it when the backup has it. So a
/// server that dies takes no acknowledged push with it: the backup takes over with all of them. A
/// worker sends a push again of which it does not know; the partition knows those that it has.
///
/// A primary without a backup makes another living server one: from one moment on it sends it every
/// push, and beside them, shard by shard, what it held at that moment. When the other has all, the
/// view names it.
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

  /// Begins the record or the replay that the options name, as the first primary.
  void open_orders();

  // What workers ask. Errors: NotPrimaryError; UsageError for what does not fit.

  /// Sets the dense parameters, before any push.
  void begin(std::span<const float> dense);
  /// Puts a checkpoint in its place, before any push.
  void load(const TableFiles& saved);
  /// Answers a pull, perhaps later.
  [[nodiscard]] rpc::Later<PullReply> pull(rpc::CallContext& call, PullRequest request);
  /// Takes a push. Returns when the backup has it too, or when there is no backup.
  void push(const PushRequest& request, const ServerLinks& links);
  /// Begins to write what it holds now into a folder, and ends a former save. Returns at once;
  /// pushes that follow change nothing of it.
  void begin_save(const SaveRequest& request);
  /// Returns what the last save has written, when all is. NotPrimaryError without a save.
  [[nodiscard]] rpc::Later<std::vector<ShardFile>> end_save();
  [[nodiscard]] WorkerProgress progress_of(uint32_t worker) const;
  /// Becomes the primary, if that of `epoch` is gone. Returns the view afterwards.
  /// Errors: NotPrimaryError when it is not gone, or this is not its backup.
  View take_over(uint64_t epoch, const ServerLinks& links);

  // What its primary tells a backup, in whatever order. Errors: NotPrimaryError when that is one no
  // longer.

  void replicate(const ReplicaPush& push);
  /// Forgets what it held, and becomes the backup when install() and complete() have come.
  void join(const JoinRequest& request);
  void install(const ReplicaShard& shard);
  void complete(const ReplicaState& state);

  // What the server does now and then.

  /// Has no part in it from now on: the process that had is gone.
  void forget();

  /// Looks whether the view has changed, or whom it names is gone.
  void look(const ServerLinks& links);
  /// Lets pulls go on that wait for workers that are gone.
  void excuse_the_dead(const ServerLinks& links);
  /// Asks another server to become the backup when there is none. Does not wait until it is one.
  /// Lifetime: the links stay until stop_copying().
  void seek_backup(const ServerLinks& links);
  void stop_copying();

  [[nodiscard]] View view() const;
  [[nodiscard]] bool is_primary() const { return view().primary == self_; }
  /// True for a primary or a backup, and for what was or becomes one.
  [[nodiscard]] bool has_a_part() const;
  /// Of each sparse table, here.
  [[nodiscard]] std::vector<TableStat> stats() const;
  /// See WorkerPace::apart().
  [[nodiscard]] uint64_t workers_apart() const;

 private:
  struct WaitingPull {
    PullRequest request{};
    rpc::Draft values{};
    rpc::Later<PullReply> reply{};
  };
  /// As the primary: who gets every push.
  struct Outgoing {
    int to = -1;
    uint64_t stream = 0;
    uint64_t sent = 0;
  };
  /// As the backup, or as the one to be.
  struct Incoming {
    uint64_t stream = 0;  ///< 0: none
    bool whole = false;   ///< what pushes change is there
    uint64_t applied = 0;
    std::map<uint64_t, PushRequest> kept{};  ///< came before what precedes them
    size_t kept_bytes = 0;
  };

  /// The partition. Errors: NotPrimaryError on a server that has no part in it.
  [[nodiscard]] Partition& partition() const;
  void check_primary() const;
  [[nodiscard]] bool is_copying() const;
  void check_stream(uint64_t stream) const;
  /// What may be answered now. With the mutex; send() without, for it may block.
  struct Answer {
    rpc::Later<PullReply> reply{};
    rpc::Draft values{};
    uint64_t seen = 0;
  };
  [[nodiscard]] std::vector<Answer> take_those_that_may();
  [[nodiscard]] bool may_answer(const PullRequest& request) const;
  void note(const OrderEntry& entry);
  /// Takes a push now, or, in a replay, when its turn has come.
  void take(const PushRequest& request);
  bool take_an_early_one();
  static void send(std::vector<Answer> answers);
  void change(const PushRequest& request);
  void apply_in_order();
  void check_kept();
  void adopt(const View& view);
  /// Sends a push to the backup and waits for it.
  void keep_safe(const ReplicaPush& push, int to, const ServerLinks& links);
  /// The server gets no more pushes of that stream.
  void lose(int server, uint64_t stream, const ServerLinks& links);
  [[nodiscard]] bool is_fresh() const;
  void send_shard(const ServerLinks& links,
                  const Outgoing& to,
                  int shard,
                  const std::vector<SavedRows>& rows,
                  const std::vector<SavedDense>& dense) const;
  void name_backup(const ServerLinks& links, const View& before, const Outgoing& to);
  void end_joining(const ServerLinks& links,
                   const View& before,
                   const Outgoing& to,
                   const PartitionState& state,
                   const std::exception_ptr& failure);

  const TableSet& tables_;
  const PartitionOptions options_;
  const int self_;
  mutable std::shared_mutex mutex_;         ///< shared by pulls
  std::unique_ptr<Partition> partition_{};  ///< nullptr: no part in it
  View view_;
  Outgoing out_{};
  Incoming in_{};
  std::list<WaitingPull> waiting_{};
  std::unique_ptr<OrderRecord> record_{};
  std::unique_ptr<OrderReplay> replay_{};
  std::map<std::pair<uint32_t, uint64_t>, PushRequest> early_{};  ///< by worker and number: replay
  uint64_t joins_ = 0;                ///< that this server has asked for
  uint64_t last_joined_ = 0;          ///< the stream of the last one that asked this server
  std::atomic<bool> naming_ = false;  ///< the store is being told of a new backup
  std::atomic<std::chrono::steady_clock::time_point> next_join_{};
  std::atomic<int> refused_ = -1;  ///< the server that did not become the backup, the last time
  std::mutex save_mutex_;
  // Their threads use what stands above.
  std::unique_ptr<PartitionCopy> joining_{};
  std::unique_ptr<PartitionCopy> saving_{};
  rpc::Later<std::vector<ShardFile>> saved_{};
};

}  // namespace argosy::ps
