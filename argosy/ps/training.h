#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/checkpoint/prune.h"
#include "argosy/optim/optimizer.h"
#include "argosy/ps/partition.h"
#include "argosy/ps/roles.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/table_saver.h"
#include "argosy/rpc/agent.h"

namespace torch::nn {
class Module;
}

namespace argosy::ps {

class OwnServer;
class ServedModel;
class WorkerSteps;

/// Who updates the parameters that are no embeddings.
enum class DenseUpdates : uint8_t {
  kServers,      ///< as rows
  kCollectives,  ///< each worker, by the average of all: in step, and without servers
};

struct TrainingOptions {
  Roles roles{};
  UpdateMode mode = UpdateMode::kSync;
  uint64_t staleness = 0;  ///< with kHalfAsync
  /// With kGeo: steps that a worker makes by itself before it sends what they have changed.
  /// Paddle's `k_steps`, `geo_sgd_need_push_nums`.
  int64_t geo_steps = 100;
  /// In kAsync and kHalfAsync: divides the learning rate of a step by the number of steps that
  /// others made between its read and its push, where that is 2 or more; see LateOptions.
  bool staleness_scaled = false;
  /// In the same modes: λ, by which a gradient of old weights is corrected; see LateOptions. Pushes
  /// then carry what was read, and are twice as large. 0: off.
  double delay_compensation = 0;
  /// With kCollectives the workers are a group that averages gradients: over shared memory inside a
  /// host, Gloo between hosts. All make the same steps, and the death of one ends the job. Not in
  /// kGeo.
  DenseUpdates dense = DenseUpdates::kServers;
  bool backup = true;  ///< each part of the tables lies on two servers, where there are two
  /// Of a step: also for the other workers, where it waits for them.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
  /// A folder of checkpoints, which all processes see under this path. Empty: none. A training
  /// goes on from the newest whole one there.
  std::string checkpoints{};
  checkpoint::KeepOptions keep{};  ///< which of them stay; default: all
  bool resume = true;  ///< false: what is in `checkpoints` is set aside, and the training begins
  /// A checkpoint with which the training begins, where `checkpoints` has none. Empty: none.
  std::string initial{};
  /// A folder for the order in which the servers take pushes and answer pulls. Empty: none is kept.
  std::string record{};
  /// A folder with such a record. The training comes to the bits of the one that was recorded, if
  /// it has as many servers and workers and begins as that one did. No backups are kept.
  std::string replay{};
  /// Bytes of memory that rows of embeddings and their ids may take in each server; rows that were
  /// not pushed to for longest then lie on disk, and come back when they are. No result changes.
  /// The disk's cache is a quarter of it, and the rows of one push come on top. 0: all stay in
  /// memory.
  size_t memory_limit = 0;
  /// A folder on a disk of the servers' machines, where each makes one for itself, which goes with
  /// it. Empty: the system's folder for temporary files.
  std::string spill_directory{};
  /// Of this process, for the rows of a large batch. 0: as many as an operator has.
  int threads = 0;
  rpc::AgentOptions agent{};  ///< how the processes meet; name, rank and world_size are set

  /// Errors: UsageError naming the field that cannot be, or not in this mode.
  void validate() const;
};

/// Trains a model whose embeddings and parameters lie on servers. Servers and workers run the same
/// program up to here, so that both know the tables.
///
///     auto model = Net();
///     optim::Adam optimizer(*model, {.lr = 1e-3});
///     ps::ServedTraining training(*model, optimizer, {.roles = ps::Roles::from_environment()});
///     if (training.is_server()) return training.serve(), 0;
///     for (auto& batch : loader) {
///       optimizer.zero_grad();
///       loss(model->forward(batch.ids), batch.targets).backward();
///       training.step();                        // in place of optimizer.step()
///     }
///     training.stop();
///
/// Every parameter is a dense table, and every Embedding a sparse one. The servers run the
/// optimizer's rule; its learning rates are those of this process at each step(), so schedules act.
/// Workers may do some of that by themselves: see UpdateMode::kGeo and DenseUpdates.
/// In kSync the results have the bits of a training by collectives on as many ranks. One thread
/// uses it.
class ServedTraining final {
 public:
  /// Joins the job. Collective over servers and workers; a worker has the servers' parameters then.
  /// Lifetime: model and optimizer stay.
  /// Errors: UsageError for an optimizer that cannot run on servers, or parameters that are not f32
  /// on the CPU; those of rpc::Agent.
  ServedTraining(torch::nn::Module& model,
                 const optim::Optimizer& optimizer,
                 TrainingOptions options);
  ~ServedTraining();
  ServedTraining(const ServedTraining&) = delete;
  ServedTraining& operator=(const ServedTraining&) = delete;
  ServedTraining(ServedTraining&&) = delete;
  ServedTraining& operator=(ServedTraining&&) = delete;

  [[nodiscard]] bool is_server() const { return options_.roles.is_server; }
  [[nodiscard]] const Roles& roles() const { return options_.roles; }

  /// A server: serves until the workers have stopped.
  void serve();

  /// A worker: sends the gradients of parameters and embeddings, and reads the parameters for the
  /// next step. A parameter without a gradient counts as one of zeros.
  /// Errors: CallError naming a server that is gone with all copies, or that does not answer. Every
  /// later step() then fails too: some servers may have this one, and others not.
  void step();
  /// Returns how many steps the training has made, those before a resume included. In kAsync the
  /// first worker's count is that of a checkpoint.
  [[nodiscard]] int64_t steps() const { return steps_; }
  /// Returns the step at which the job began: that of the checkpoint from which it resumed, or 0.
  /// It is smaller than steps() on a worker that was started again alone.
  [[nodiscard]] int64_t begun() const { return begun_; }
  /// Says where in its data the program is after steps(), in words of its own. The checkpoints that
  /// follow hold those of the first worker.
  void set_place(std::string place) { place_ = std::move(place); }
  /// Returns what was said last; before that, on every worker, what the checkpoint holds from which
  /// the job resumed, for begun(). "": nothing.
  [[nodiscard]] const std::string& place() const { return place_; }
  /// Begins a checkpoint of tables and parameters as they are now: the servers write while the
  /// training goes on. All workers may call it; the first one's call counts. It does not hold what
  /// is the program's own: make a schedule from steps().
  /// Errors: CheckpointError of this or the former save, naming what could not be written. A server
  /// that dies meanwhile is no error: the next save makes another.
  void save();
  /// Saves into a folder of your own, and returns when all is on the disk. As above otherwise.
  /// Errors: CheckpointError, also when a server died meanwhile.
  void save(const std::string& directory);
  /// Returns when all workers have called it as often. One that died and is not started again is
  /// not waited for. Errors: TimeoutError naming the key of one that neither comes nor makes a step
  /// within `timeout`.
  void barrier();
  /// Returns an optimizer whose step() is that of this training, for schedules and loops that take
  /// one. Learning rates are shared with the optimizer that was given. Its state_dict() has rates
  /// and no state, which lies on the servers: see save().
  /// Lifetime: this object stays.
  [[nodiscard]] optim::Optimizer optimizer();
  /// Reads the parameters as they are now. In kGeo it ends the round.
  void pull();
  /// Waits until all workers have called it and the last checkpoint is on the disk; then the
  /// servers stop. Errors: those of save().
  void stop();
  /// Says that a day begins, counted from 0, and lets tables with statistics drop rows that nobody
  /// sees any more; see ShrinkOptions. In kSync all workers call it, in other modes one. Errors of
  /// shrink(): UsageError where no table has statistics.
  void set_day(int32_t day);
  void shrink();
  /// Returns rows and memory of each embedding's table, and what of it lies on disk.
  [[nodiscard]] std::vector<TableStat> stats();
  /// Returns what each server tells of itself. Cost: a call to each, some 0.1 ms on one host.
  [[nodiscard]] std::vector<ServerStat> server_stats();

 private:
  /// Errors: UsageError on a server.
  void check_works(const char* call) const;
  [[nodiscard]] bool is_out(int worker, std::chrono::milliseconds patience);
  [[nodiscard]] std::unique_ptr<WorkerSteps> make_steps();
  void begin();
  [[nodiscard]] std::string begin_tables();
  [[nodiscard]] bool needs_all_workers() const;
  [[nodiscard]] TableServerOptions server_options() const;
  [[nodiscard]] int threads() const;
  /// What a failure leaves half done is never built upon.
  void wholly(const std::function<void()>& work);
  void say_what_a_death_means();
  void await(const std::string& key, int worker, std::chrono::milliseconds patience);
  [[nodiscard]] std::chrono::milliseconds patience() const;

  TrainingOptions options_;
  std::unique_ptr<ServedModel> model_;
  std::vector<std::string> servers_{};
  std::unique_ptr<TableServer> server_{};
  std::unique_ptr<OwnServer> own_server_{};  ///< ends after the agent
  std::unique_ptr<rpc::Agent> agent_{};
  std::unique_ptr<TableClient> client_{};
  std::unique_ptr<WorkerSteps> how_{};   ///< of a worker
  std::unique_ptr<TableSaver> saver_{};  ///< of the first worker
  bool failed_ = false;                  ///< amid what all servers must have
  int64_t steps_ = 0;
  int64_t begun_ = 0;
  std::string place_{};
  int64_t barriers_ = 0;
};

}  // namespace argosy::ps
