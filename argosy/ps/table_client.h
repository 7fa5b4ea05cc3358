#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/ps/id_deal.h"
#include "argosy/ps/requests.h"
#include "argosy/ps/shard_threads.h"
#include "argosy/ps/table_server.h"
#include "argosy/ps/tables.h"
#include "argosy/ps/views.h"
#include "argosy/rpc/agent.h"

namespace argosy::ps {

struct ClientOptions {
  std::vector<std::string> servers{};  ///< names of the servers' agents, in their order
  uint32_t worker = 0;
  /// It takes the place of a process of this worker that died.
  bool goes_on = false;
  std::string terms{};  ///< see TableServerOptions; empty: any
  /// Of a pull or a push, waiting for other workers included.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  int threads = 1;  ///< for the rows of a large batch
};

/// Reads and writes the tables of a job's servers for one worker. One thread uses it at a time.
///
///     ps::IdDeal ids = client.deal(batch);                // u64 [n], repeats allowed
///     std::vector<float> rows(batch.size() * dim);
///     client.pull({{.table = 0, .ids = ids, .out = rows}});
///     … gradients [n, dim] …
///     client.push({{.table = 0, .ids = ids, .gradients = gradients, .lr = 0.05}});
class TableClient final {
 public:
  /// Errors: UsageError when a server has other tables; those of Agent::call().
  TableClient(rpc::Agent& agent, TableSet tables, ClientOptions options);

  /// Returns how many pushes of a worker the first partition has.
  [[nodiscard]] uint64_t pushes_of(uint32_t worker);
  /// Returns how many steps former processes of this worker have pushed, see
  /// ClientOptions::goes_on.
  [[nodiscard]] uint64_t steps_before() const { return steps_before_; }

  struct Rows {
    uint32_t table = 0;
    const IdDeal& ids;
    std::span<float> out{};  ///< [n, dim], in the order of the batch
  };
  struct Gradients {
    uint32_t table = 0;
    const IdDeal& ids;
    std::span<const float> gradients{};  ///< [n, dim], in the order of the batch
    double lr = 0.05;
    std::span<const float> shows{};    ///< [n] or empty; those of one id are added
    std::span<const float> clicks{};   ///< [n] or empty
    std::span<const uint64_t> seen{};  ///< by the read of the rows; empty: they are not late
    std::span<const float> read{};     ///< [n, dim], what was read; see LateOptions::compensation
  };
  struct Dense {
    std::vector<std::span<float>> values{};  ///< of each parameter, in the order of the tables
  };
  struct DenseGradients {
    std::vector<std::span<const float>> gradients{};
    std::vector<double> lr{};          ///< of each parameter
    std::span<const uint64_t> seen{};  ///< as above
    std::vector<std::span<const float>> read{};
  };

  /// Deals the ids of a batch, in the threads of this client. Lifetime: until this client's end.
  [[nodiscard]] IdDeal deal(std::span<const uint64_t> ids) const { return IdDeal(ids, threads_); }

  /// A pull that is under way.
  class Reading final {
    friend class TableClient;
    std::vector<PullRequest> requests_{};
    std::vector<std::optional<rpc::Future<PullReply>>> calls_{};
  };
  /// How many steps of other workers a read has seen, in each partition.
  using Seen = std::vector<uint64_t>;
  /// Asks for rows, and for the dense parameters too if `dense`. Returns at once; finish() takes
  /// the same rows. Errors: UsageError when the ids do not fit.
  [[nodiscard]] Reading begin_pull(std::span<const Rows> rows, bool dense = false);
  /// Waits for it, and writes what it read. Errors: those of pull().
  Seen finish(Reading& reading, std::span<const Rows> rows, const Dense* dense = nullptr);

  /// Gives the dense parameters the values that this worker's tables have, on all servers. One
  /// worker calls it, before any push.
  void begin();
  /// What the servers write of a save that has begun.
  class Saving final {
   public:
    /// Returns the files of all shards when no server writes any more; then throws the first
    /// failure, so that its caller may remove the folder.
    [[nodiscard]] std::vector<ShardFile> wait() const;

   private:
    friend class TableClient;
    std::vector<rpc::Future<std::vector<ShardFile>>> files_{};
    std::exception_ptr failure_{};  ///< of a server that could not be asked
  };
  /// Lets the servers write all tables as they are now into a folder that all see under this path.
  /// Returns when each has fixed the moment; pushes that follow change nothing of what is written.
  /// In kSync all servers write the same step. `dense`: what the dense parameters are, where the
  /// workers have them and not the servers. A former save that is not done ends with an error.
  /// Errors: as pull().
  [[nodiscard]] Saving begin_save(const std::string& folder,
                                  const std::vector<SavedDense>& dense = {});
  /// Lets the servers read a checkpoint. One worker calls it, in place of begin().
  /// Errors: CheckpointError's text as RemoteError; UsageError when it is of other tables.
  void load(const std::string& checkpoint);
  /// Reads rows, and the dense parameters with `dense`. Blocks until all servers have answered;
  /// what they wait for depends on the mode.
  /// Errors: CallError naming the server that is gone, or that did not answer in time.
  Seen pull(std::span<const Rows> rows, const Dense* dense = nullptr);
  /// Sends gradients. Blocks until all servers have them. Errors: as pull().
  void push(std::span<const Gradients> gradients, const DenseGradients* dense = nullptr) {
    push(gradients, dense, {}, 1);
  }
  /// In kGeo: sends what `steps` steps of this worker have changed. Errors: as pull().
  void push_differences(std::span<const Gradients> differences,
                        const DenseGradients* dense,
                        uint64_t steps) {
    push(differences, dense, {}, steps);
  }
  // Upkeep of tables with statistics, between two pushes: in kSync all workers call it, and one of
  // them is enough else. Errors: as pull().

  /// Lets shows and clicks decay, and drops rows that nobody sees: see ShrinkOptions.
  void shrink() { keep_up({.shrink = true}); }
  /// Says which day it is from now on. Errors: UsageError for a day before the first, 0.
  void set_day(int32_t day);

  /// Returns rows and memory of each sparse table, of all servers together.
  [[nodiscard]] std::vector<TableStat> stats();
  /// Returns what each server tells of itself, in their order. One that is gone is no error.
  [[nodiscard]] std::vector<ServerStat> server_stats();
  /// Tells the servers to stop: TableServer::run() returns.
  void stop();
  [[nodiscard]] const TableSet& tables() const { return tables_; }

 private:
  [[nodiscard]] int servers() const { return static_cast<int>(options_.servers.size()); }
  [[nodiscard]] ShardRange shards(int partition) const { return shards_of(partition, servers()); }
  [[nodiscard]] rpc::Target primary_of(int partition) const;
  /// Asks each server that has a partition, until all that have it have done so: a server's death
  /// is then nobody's matter. Errors: CallError when no server has a partition any more.
  void fill(const std::function<rpc::Future<void>(int partition, const std::string& server)>& ask);
  /// The same once. Returns the partitions of servers that are gone, with the reasons.
  [[nodiscard]] std::map<int, std::string> fill_once(
      const std::vector<int>& partitions,
      const std::function<rpc::Future<void>(int partition, const std::string& server)>& ask);
  /// True for what find_primary() may mend.
  [[nodiscard]] bool is_of_a_death(const rpc::CallError& error);
  [[nodiscard]] rpc::Memory ids_for(int partition, const IdDeal& ids);
  [[nodiscard]] RowsPushed part_of(const Gradients& all,
                                   int partition,
                                   std::vector<float*>& sums,
                                   std::vector<rpc::Draft>& drafts);

  void begin_where_it_is();
  [[noreturn]] void refuse_tables_of(const rpc::Target& server);
  [[nodiscard]] size_t size_of(const PullRequest& request) const;
  void check_dense(size_t given, const std::function<size_t(size_t)>& size) const;
  void add_rows(const Gradients& all, std::vector<PushRequest>& requests);
  [[nodiscard]] std::vector<std::string> living_servers();
  void keep_up(const Upkeep& upkeep);
  void push(std::span<const Gradients> gradients,
            const DenseGradients* dense,
            const Upkeep& upkeep,
            uint64_t steps);

  /// Calls a function of each partition's primary at once. A server that dies is replaced by the
  /// backup, which is asked again: requests may come twice.
  template <typename Result, typename Request>
  [[nodiscard]] std::vector<rpc::Future<Result>> ask_all(const std::string& function,
                                                         const std::vector<Request>& requests);
  /// Its two halves.
  template <typename Result, typename Request>
  [[nodiscard]] std::vector<std::optional<rpc::Future<Result>>> start_all(
      const std::string& function, const std::vector<Request>& requests);
  template <typename Result, typename Request>
  [[nodiscard]] std::vector<rpc::Future<Result>> settle_all(
      std::vector<std::optional<rpc::Future<Result>>> calls,
      const std::string& function,
      const std::vector<Request>& requests);
  /// Waits for a call, or for the server to be replaced. Throws what does not come of that.
  template <typename Result, typename Request>
  [[nodiscard]] rpc::Future<Result> settled(std::optional<rpc::Future<Result>> call,
                                            const std::string& function,
                                            const Request& request);
  void wait_for_disk(const rpc::RemoteError& error);
  /// Looks who is the primary by now, and lets the backup take over from one that is gone.
  /// Errors: CallError when no server has the partition.
  void find_primary(int partition, const std::string& why, const Deadline& deadline);

  rpc::Agent& agent_;
  const TableSet tables_;
  const ClientOptions options_;
  const ShardThreads threads_;
  Views views_;
  std::vector<View> known_{};                    ///< by partition
  std::vector<std::vector<size_t>> dense_of_{};  ///< by partition
  uint64_t pushes_ = 0;
  uint64_t upkeeps_ = 0;  ///< since the last of them
  uint64_t steps_before_ = 0;
  uint64_t pulls_ = 0;
  bool said_disk_ = false;
};

}  // namespace argosy::ps
