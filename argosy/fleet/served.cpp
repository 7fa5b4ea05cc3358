#include "argosy/fleet/served.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/fleet/served_job.h"
#include "argosy/optim/forwarding_optimizer.h"

namespace argosy::fleet {
namespace {

/// What a process knows of its job with servers.
class JobOfServers final : public detail::ServedJob {
 public:
  explicit JobOfServers(ps::TrainingOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const ps::Roles& roles() const { return options_.roles; }
  [[nodiscard]] int worker_index() const override { return roles().is_server ? -1 : roles().index; }
  [[nodiscard]] int worker_num() const override { return roles().workers; }
  void barrier_worker() override { training("barrier_worker").barrier(); }
  void stop_worker() override {
    training("stop_worker").stop();
    detail::served_job().reset();  // this object
  }

  void set(torch::nn::Module& model, const optim::Optimizer& optimizer) {
    ARGOSY_CHECK(training_ == nullptr,
                 "fleet.distributed_optimizer",
                 "the job is joined already: call it before init_server() and init_worker()");
    model_ = &model;
    optimizer_ = optimizer;
  }
  void load(const std::string& checkpoint) {
    ARGOSY_CHECK(training_ == nullptr,
                 "fleet.load_model",
                 "the job is joined already: call it before init_worker()");
    options_.initial = checkpoint;
  }
  void join(const char* function) {
    ARGOSY_CHECK(optimizer_.has_value(),
                 fmt::format("fleet.{}", function),
                 "it is not known what to train: call distributed_optimizer(optimizer, model) "
                 "first");
    ARGOSY_CHECK(training_ == nullptr,
                 fmt::format("fleet.{}", function),
                 "the job is joined already: call it once");
    training_ = std::make_unique<ps::ServedTraining>(*model_, *optimizer_, options_);
  }
  [[nodiscard]] ps::ServedTraining& training(const char* function) {
    ARGOSY_CHECK(training_ != nullptr,
                 fmt::format("fleet.{}", function),
                 "the job is not joined: call {} first",
                 roles().is_server ? "init_server()" : "init_worker()");
    return *training_;
  }

 private:
  ps::TrainingOptions options_;
  torch::nn::Module* model_ = nullptr;
  std::optional<optim::Optimizer> optimizer_{};
  std::unique_ptr<ps::ServedTraining> training_{};
};

JobOfServers& served(const char* function) {
  auto* const job = dynamic_cast<JobOfServers*>(detail::served_job().get());
  ARGOSY_CHECK(
      job != nullptr,
      fmt::format("fleet.{}", function),
      "this is no job with servers: call fleet::init(fleet::PaddleCloudRoleMaker()) first");
  return *job;
}

/// A function of one of the two kinds of processes.
JobOfServers& served_by(bool server, const char* function) {
  JobOfServers& job = served(function);
  ARGOSY_CHECK(job.roles().is_server == server,
               fmt::format("fleet.{}", function),
               "this process is a {}: it is for {}s. Ask fleet::is_server()",
               server ? "worker" : "server",
               server ? "server" : "worker");
  return job;
}

ps::ServedTraining& training(const char* function) {
  return served_by(false, function).training(function);
}

/// Steps by the training that init_worker() begins.
class LaterOptimizer final : public optim::ForwardingOptimizer {
 public:
  using ForwardingOptimizer::ForwardingOptimizer;
  void step() override { training("step").step(); }
};

}  // namespace

ps::TrainingOptions a_sync(const ASyncConfigs& configs) {
  ARGOSY_CHECK(configs.k_steps >= 0,
               "fleet.a_sync",
               "k_steps: expected 0 or more, got {}: no mode is chosen here by the memory that is "
               "free",
               configs.k_steps);
  ps::TrainingOptions options{.mode = ps::UpdateMode::kAsync};
  if (configs.k_steps > 0) {
    options.mode = ps::UpdateMode::kGeo;
    options.geo_steps = configs.k_steps;
  }
  return options;
}

ps::Roles detail::roles_of(const PaddleCloudRoleMaker& maker) {
  ARGOSY_CHECK(!maker.is_collective,
               "fleet.init",
               "a job of collectives has no servers: call fleet::init() without a role maker");
  return ps::Roles::from_environment();
}

ps::Roles detail::roles_of(const UserDefinedRoleMaker& maker) {
  const int servers = static_cast<int>(maker.server_endpoints.size());
  const bool serves = maker.role == Role::kServer;
  ARGOSY_CHECK(
      servers > 0 && maker.worker_num > 0 && maker.current_id >= 0 &&
          maker.current_id < (serves ? servers : maker.worker_num),
      "fleet.init",
      "expected server_endpoints, worker_num from 1 on, and current_id below their number, "
      "got {} servers, {} workers and current_id {} of a {}",
      servers,
      maker.worker_num,
      maker.current_id,
      serves ? "server" : "worker");
  return {.servers = servers,
          .workers = maker.worker_num,
          .is_server = serves,
          .index = maker.current_id,
          .meeting = maker.server_endpoints.front()};
}

void detail::init_served(const ps::Roles& roles, ps::TrainingOptions options) {
  ARGOSY_CHECK(!is_initialized(),
               "fleet.init",
               "called twice in one process. Call stop_worker() before a second init().");
  options.roles = roles;
  served_job() = std::make_unique<JobOfServers>(std::move(options));
}

bool is_server() {
  return detail::served_job() != nullptr && served("is_server").roles().is_server;
}
bool is_worker() {
  return !is_server();
}
int server_num() {
  return served("server_num").roles().servers;
}
int server_index() {
  const ps::Roles& roles = served("server_index").roles();
  return roles.is_server ? roles.index : -1;
}

optim::Optimizer distributed_optimizer(const optim::Optimizer& optimizer,
                                       torch::nn::Module& model) {
  served("distributed_optimizer").set(model, optimizer);
  return optim::Optimizer(std::make_shared<LaterOptimizer>(optimizer.impl()));
}

void init_server() {
  served_by(true, "init_server").join("init_server");
}
void run_server() {
  served_by(true, "run_server").training("run_server").serve();
  detail::served_job().reset();
}
void init_worker() {
  served_by(false, "init_worker").join("init_worker");
}

void load_model(const std::string& checkpoint) {
  served_by(false, "load_model").load(checkpoint);
}
void save_persistables(const std::string& directory) {
  training("save_persistables").save(directory);
}
void shrink() {
  training("shrink").shrink();
}
void set_date(int32_t day) {
  training("set_date").set_day(day);
}

void print_table_stat() {
  ps::ServedTraining& mine = training("print_table_stat");
  if (mine.roles().index == 0) {
    for (const ps::TableStat& table : mine.stats()) {
      detail::print_line(fmt::format(
          "{}: {} rows, {} bytes{}",
          table.name,
          table.rows,
          table.bytes,
          table.disk_rows == 0
              ? ""
              : fmt::format("; {} of them on disk, {} bytes", table.disk_rows, table.disk_bytes)));
    }
  }
}

}  // namespace argosy::fleet
