#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/ps/replica.h"
#include "argosy/ps/tables.h"
#include "argosy/ps/views.h"
#include "argosy/rpc/agent.h"
#include "argosy/rpc/functions.h"

namespace argosy::ps {

/// What a server tells of itself.
struct ServerStat {
  std::string name{};
  /// False: it is gone, or does not answer. The rest is then empty.
  bool lives = false;
  /// Rows of which it is the primary; bytes of all rows that it has, those of a backup too.
  std::vector<TableStat> tables{};
  uint64_t pushes = 0;  ///< that workers have sent this process
  uint64_t apart = 0;   ///< pushes between the fastest worker and the slowest one that lives
  auto fields() { return std::tie(name, lives, tables, pushes, apart); }
};

struct TableServerOptions {
  std::vector<std::string> servers{};  ///< names of the servers' agents, in their order
  int server = 0;                      ///< which of them this is
  int workers = 1;
  /// Names of the workers' agents, in their order: with kHalfAsync nobody waits for one that is
  /// gone. Empty: all wait for it.
  std::vector<std::string> worker_names{};
  UpdateMode mode = UpdateMode::kSync;
  uint64_t staleness = 0;  ///< with kHalfAsync: see UpdateMode
  LateOptions late{};
  /// What workers must agree on beside the tables, in words. Workers that name other ones are
  /// refused.
  std::string terms{};
  bool backup = true;  ///< keeps each partition on two servers, where there are two
  /// A folder for the order in which pushes and pulls come, 16 bytes each. Empty: none is kept.
  std::string record{};
  /// A folder with such a record: the run takes pushes and answers pulls in that order, and so
  /// comes to the same bits, with as many servers and workers. It keeps no backups.
  std::string replay{};
  /// Bytes that rows and their ids may take in this process; others go to disk. 0: all stay in
  /// memory. See SpillOptions, also for the directory.
  size_t memory_limit = 0;
  std::string spill_directory{};
  int threads = 1;  ///< for the rows of a large batch
};

/// Serves tables to the workers of a job: one partition of them as the primary, another one as the
/// backup, and others when servers die. Thread-safe.
///
///     ps::TableServer server(tables, {.servers = {"server0", "server1"}, .server = 0, …});
///     rpc::Functions functions;
///     server.serve(functions);
///     rpc::Agent agent({.name = "server0"}, functions);
///     server.run(agent);                                  // until a worker says stop
///     agent.shutdown();
class TableServer final {
 public:
  /// Errors: UsageError for options that cannot be; DiskError.
  TableServer(const TableSet& tables, TableServerOptions options);
  ~TableServer();
  TableServer(const TableServer&) = delete;
  TableServer& operator=(const TableServer&) = delete;
  TableServer(TableServer&&) = delete;
  TableServer& operator=(TableServer&&) = delete;

  /// Offers its functions, "ps/pull" and others. Lifetime: it outlives the agent that serves them.
  void serve(rpc::Functions& functions);
  /// Serves until a worker calls TableClient::stop(). False: `deadline` passed first. A server that
  /// takes the place of one that died has nothing at first, and becomes the backup of what has
  /// none. Errors: RendezvousError when the one that died had what nobody else has.
  /// `started`: called when requests are answered.
  bool run(rpc::Agent& agent,
           const Deadline& deadline = Deadline::never(),
           const std::function<void()>& started = {});
  /// Of the partitions of which this server is the primary.
  [[nodiscard]] std::vector<TableStat> stats() const;
  [[nodiscard]] ServerStat stat_of_all() const;

 private:
  // Block until run() has begun, because requests may come sooner.
  [[nodiscard]] Replica& replica(uint32_t partition);
  [[nodiscard]] const ServerLinks& links();
  void begin_views();
  void give_up_roles();
  [[nodiscard]] bool keeps_backups() const { return options_.backup && options_.replay.empty(); }
  void look_around();

  const TableSet tables_;
  const TableServerOptions options_;
  std::vector<std::unique_ptr<Replica>> replicas_{};  ///< by partition
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unique_ptr<Views> views_{};
  ServerLinks links_{};
  bool running_ = false;
  bool stop_ = false;
  std::atomic<uint64_t> pushes_ = 0;
};

}  // namespace argosy::ps
