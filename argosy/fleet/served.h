#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/fleet/fleet.h"
#include "argosy/optim/optimizer.h"
#include "argosy/ps/training.h"

/// A training with servers in Paddle's words; see ps::ServedTraining, which does the work.
///
///     fleet::init(fleet::PaddleCloudRoleMaker(), {.mode = ps::UpdateMode::kAsync});
///     auto optimizer = fleet::distributed_optimizer(optim::Adam(net, {.lr = 1e-3}), net);
///     if (fleet::is_server()) {
///       fleet::init_server();
///       fleet::run_server();                                  // until the workers stop
///     } else {
///       fleet::init_worker();
///       …                                                     // optimizer.step() as ever
///       fleet::stop_worker();
///     }
///
/// worker_index(), worker_num(), is_first_worker(), barrier_worker() and stop_worker() of fleet.h
/// are those of the workers then. Everything there that needs a group of collectives is an error.
namespace argosy::fleet {

/// Reads a launcher's variables: see ps::Roles::from_environment(). A job without servers is an
/// error, where Paddle makes one trainer of it.
struct PaddleCloudRoleMaker {
  bool is_collective = false;
};

/// Numbers are Paddle's.
enum class Role : uint8_t { kWorker = 1, kServer = 2 };

/// Says who this process is where no launcher does.
struct UserDefinedRoleMaker {
  int current_id = 0;  ///< among the servers, or among the workers
  Role role = Role::kWorker;
  int worker_num = 1;
  std::vector<std::string> server_endpoints{};  ///< "host:port" of each; all meet at the first
};

/// Paddle's `a_sync_configs`.
struct ASyncConfigs {
  int64_t k_steps = 0;  ///< steps that a worker makes by itself; 0: it sends the gradients of each
};
/// Returns the options of Paddle's `a_sync`: kGeo with k_steps, else kAsync. Without it, kSync,
/// take none.
///
///     fleet::init(fleet::PaddleCloudRoleMaker(), fleet::a_sync({.k_steps = 100}));
///
/// Errors: UsageError for less than 0, for which Paddle chooses a mode by the memory that is free.
[[nodiscard]] ps::TrainingOptions a_sync(const ASyncConfigs& configs = {});

namespace detail {
[[nodiscard]] ps::Roles roles_of(const PaddleCloudRoleMaker& maker);
[[nodiscard]] ps::Roles roles_of(const UserDefinedRoleMaker& maker);
void init_served(const ps::Roles& roles, ps::TrainingOptions options);
}  // namespace detail

/// Says who is who. Nothing is joined yet. `options`: its roles are set.
/// Errors: ConfigError naming the variable; UsageError when it is called twice, or for a number
/// that is out of range.
template <typename Maker>
requires std::same_as<Maker, PaddleCloudRoleMaker> || std::same_as<Maker, UserDefinedRoleMaker>
void init(const Maker& maker, const ps::TrainingOptions& options = {}) {
  detail::init_served(detail::roles_of(maker), options);
}

/// A job of collectives has workers alone.
[[nodiscard]] bool is_server();
[[nodiscard]] bool is_worker();
[[nodiscard]] int server_num();
[[nodiscard]] int server_index();  ///< -1 for a worker

/// Lays the model's embeddings and parameters on the servers, which update them as the optimizer
/// does. Returns the optimizer whose step() sends gradients: a worker's, after init_worker().
/// Lifetime: the model stays until stop_worker() or run_server() has returned.
/// Errors: those of ps::ServedTraining.
[[nodiscard]] optim::Optimizer distributed_optimizer(const optim::Optimizer& optimizer,
                                                     torch::nn::Module& model);

/// A server: joins the job. Collective over servers and workers, with init_worker().
void init_server();
/// A server: serves until the workers have stopped.
void run_server();
/// A worker: joins the job, and has the servers' parameters then.
void init_worker();

/// Before init_worker(): the job begins with this checkpoint, of save_persistables() or of
/// ps::TrainingOptions::checkpoints. The first worker's call counts.
void load_model(const std::string& checkpoint);
/// Saves tables and parameters as the checkpoint `directory/step-<n>`, which all processes see
/// under this path. The first worker's call counts, and returns when all is on the disk.
/// Errors: CheckpointError, also when a server died meanwhile.
void save_persistables(const std::string& directory);
/// Drops rows that nobody sees any more: see ps::ServedTraining::shrink().
void shrink();
/// A day begins, counted from 0, for all tables.
void set_date(int32_t day);
/// Prints rows and memory of each table on the first worker, and what of it lies on disk.
void print_table_stat();

}  // namespace argosy::fleet
