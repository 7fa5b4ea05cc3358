#include "argosy/ps/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/checkpoint/set_aside.h"
#include "argosy/optim/forwarding_optimizer.h"
#include "argosy/os/crash_handler.h"
#include "argosy/ps/geo_steps.h"
#include "argosy/ps/hybrid_steps.h"
#include "argosy/ps/own_server.h"
#include "argosy/ps/pushed_steps.h"
#include "argosy/ps/served_model.h"
#include "argosy/ps/table_files.h"
#include "argosy/ps/worker_group.h"
#include "argosy/rendezvous/missed_ranks.h"

namespace argosy::ps {
namespace {

std::string server_name(int number) {
  return fmt::format("server{}", number);
}
std::string worker_name(int number) {
  return fmt::format("worker{}", number);
}

std::string barrier_key(int64_t number, int worker) {
  return fmt::format("ps/barrier/{}/{}", number, worker);
}

rpc::AgentOptions agent_options(const TrainingOptions& options) {
  const Roles& roles = options.roles;
  rpc::AgentOptions agent = options.agent;
  agent.name = roles.is_server ? server_name(roles.index) : worker_name(roles.index);
  agent.rank = roles.rank >= 0   ? roles.rank
               : roles.is_server ? roles.index
                                 : roles.servers + roles.index;
  agent.world_size = roles.servers + roles.workers;
  if (agent.store == nullptr && agent.master_endpoint.empty() && !env::get("ARGOSY_STORE")) {
    agent.master_endpoint = roles.meeting;
  }
  return agent;
}

LateOptions late_options(const TrainingOptions& options) {
  return {.scales_rates = options.staleness_scaled, .compensation = options.delay_compensation};
}

std::string_view name_of(UpdateMode mode) {
  constexpr std::array<std::string_view, 4> kNames{"kSync", "kAsync", "kHalfAsync", "kGeo"};
  return kNames.at(static_cast<size_t>(mode));
}

/// What all processes must have chosen alike.
std::string terms_of(const TrainingOptions& options) {
  return fmt::format(
      "{}, staleness {}, geo_steps {}, staleness_scaled {}, delay_compensation {}, dense by {}",
      name_of(options.mode),
      options.staleness,
      options.geo_steps,
      options.staleness_scaled,
      options.delay_compensation,
      options.dense == DenseUpdates::kServers ? "servers" : "collectives");
}

TrainingOptions checked(TrainingOptions options) {
  os::install_crash_handler();  // first: what is wrong with the options is told by it too
  options.validate();
  return options;
}

/// An optimizer whose steps servers make, where its state lies.
class ServedOptimizer final : public optim::ForwardingOptimizer {
 public:
  ServedOptimizer(ServedTraining& training, const optim::Optimizer& here)
      : ForwardingOptimizer(here.impl()), training_(training) {}

  void step() override { training_.step(); }
  void add_param_group(const engine::NamedTensors& /*parameters*/,
                       const optim::ParamGroup& /*group*/) override {
    throw UsageError("ps.training", "the servers' tables are made: add parameters before");
  }
  [[nodiscard]] optim::OptimizerState state_dict() const override {
    return {.optimizer = name(), .groups = groups()};
  }
  void load_state_dict(const optim::OptimizerState& state) override {
    for (std::size_t g = 0; g < std::min(state.groups.size(), groups().size()); ++g) {
      set_group_lr(g, state.groups[g].lr);
    }
  }

 private:
  ServedTraining& training_;
};

}  // namespace

void TrainingOptions::validate() const {
  late_options(*this).validate(mode);
  ARGOSY_CHECK(geo_steps >= 1, "ps.training", "geo_steps: expected 1 or more, got {}", geo_steps);
  ARGOSY_CHECK(
      mode != UpdateMode::kGeo || dense == DenseUpdates::kServers,
      "ps.training",
      "dense by collectives is not for kGeo, where a worker keeps its parameters to itself "
      "for a round: take kSync, kAsync or kHalfAsync, or dense on servers");
}

optim::Optimizer ServedTraining::optimizer() {
  return optim::Optimizer(std::make_shared<ServedOptimizer>(*this, model_->optimizer()));
}

ServedTraining::ServedTraining(torch::nn::Module& model,
                               const optim::Optimizer& optimizer,
                               TrainingOptions options)
    : options_(checked(std::move(options))),
      model_(std::make_unique<ServedModel>(model, optimizer)) {
  if (options_.mode == UpdateMode::kGeo) {
    GeoSteps::check(model_->tables());
  }
  for (int s = 0; s < options_.roles.servers; ++s) {
    servers_.push_back(server_name(s));
  }
  rpc::Functions functions;
  if (is_server()) {
    server_ = std::make_unique<TableServer>(model_->tables(), server_options());
    server_->serve(functions);
  }
  rpc::AgentOptions agent = agent_options(options_);
  if (options_.roles.own_server) {
    own_server_ = std::make_unique<OwnServer>(model_->tables(), server_options(), agent);
    agent = own_server_->worker_options();
  }
  agent_ = std::make_unique<rpc::Agent>(agent, functions);
  if (own_server_ != nullptr) {
    own_server_->await_start();
  }
  if (!is_server()) {
    say_what_a_death_means();
    client_ = std::make_unique<TableClient>(
        *agent_,
        model_->tables(),
        ClientOptions{.servers = servers_,
                      .worker = static_cast<uint32_t>(options_.roles.index),
                      .goes_on = agent_->rejoined(),
                      .terms = terms_of(options_),
                      .timeout = options_.timeout,
                      .threads = threads()});
    how_ = make_steps();
    begin();
    optimizer.impl()->hand_over_steps(
        {.where = "ps.training",
         .why = "servers make the steps of this optimizer: call training.step(), or take "
                "training.optimizer()"});
  }
}

TableServerOptions ServedTraining::server_options() const {
  std::vector<std::string> workers;
  for (int w = 0; w < options_.roles.workers; ++w) {
    workers.push_back(worker_name(w));
  }
  return {.servers = servers_,
          .server = options_.roles.is_server ? options_.roles.index : 0,
          .workers = options_.roles.workers,
          .worker_names = workers,
          .mode = options_.mode,
          .staleness = options_.staleness,
          .late = late_options(options_),
          .terms = terms_of(options_),
          .backup = options_.backup,
          .record = options_.record,
          .replay = options_.replay,
          .memory_limit = options_.memory_limit,
          .spill_directory = options_.spill_directory,
          .threads = threads()};
}

int ServedTraining::threads() const {
  return options_.threads > 0 ? options_.threads : at::get_num_threads();
}

ServedTraining::~ServedTraining() {
  model_->optimizer().impl()->hand_over_steps({});
}

std::unique_ptr<WorkerSteps> ServedTraining::make_steps() {
  const bool keeps_read = options_.delay_compensation > 0;
  const bool is_geo = options_.mode == UpdateMode::kGeo;
  model_->bind(*client_,
               {.ahead = options_.mode != UpdateMode::kSync && !is_geo,
                .keeps_read = keeps_read,
                .local = is_geo});
  if (is_geo) {
    return std::make_unique<GeoSteps>(
        *client_,
        *model_,
        GeoOptions{.workers = options_.roles.workers, .steps = options_.geo_steps});
  }
  if (options_.dense == DenseUpdates::kCollectives) {
    return std::make_unique<HybridSteps>(
        *client_, *model_, group_of_workers(agent_->store(), options_.roles, options_.timeout));
  }
  return std::make_unique<PushedSteps>(
      *client_, *model_, keeps_read ? PushedSteps::Read::kKept : PushedSteps::Read::kForgotten);
}

/// How long others wait while the first worker may read or write a checkpoint.
std::chrono::milliseconds ServedTraining::patience() const {
  return options_.timeout +
         (options_.checkpoints.empty() ? std::chrono::hours(0) : std::chrono::hours(1));
}

bool ServedTraining::needs_all_workers() const {
  return options_.mode == UpdateMode::kSync || options_.dense == DenseUpdates::kCollectives;
}

/// In kSync all wait for each. The first worker saves and says when it is over.
void ServedTraining::say_what_a_death_means() {
  using rendezvous::MissedRank;
  if (needs_all_workers()) {
    if (agent_->rejoined()) {
      throw RendezvousError("ps.training",
                            fmt::format("worker {} was started again alone, and in kSync, or with "
                                        "dense by collectives, all begin anew, from a checkpoint",
                                        options_.roles.index));
    }
    return;
  }
  rendezvous::say_if_missed(
      *agent_->store(),
      agent_->rank(),
      options_.roles.index == 0 ? MissedRank::kStartsAgain : MissedRank::kIsMissed,
      Deadline::after(options_.timeout));
}

/// The first worker's parameters are everybody's, or those of a checkpoint.
/// Returns that checkpoint, or "".
std::string ServedTraining::begin_tables() {
  if (saver_ != nullptr && !options_.resume) {
    checkpoint::set_aside_later(options_.checkpoints, -1);
    if (saver_->has_any()) {
      throw CheckpointError("ps.load",
                            "this training must not resume, and the checkpoints that are here "
                            "cannot be moved away: name another folder, or remove them",
                            {options_.checkpoints, {}});
    }
  }
  if (saver_ != nullptr && (options_.initial.empty() || saver_->has_any())) {
    steps_ = saver_->resume();
    place_ = saver_->resumed_from().empty() ? "" : read_place(saver_->resumed_from());
    return saver_->resumed_from();
  }
  options_.initial.empty() ? client_->begin() : client_->load(options_.initial);
  return options_.initial;
}

/// One that was started again goes on where it was.
void ServedTraining::begin() {
  constexpr const char* kBegun = "ps/begun";
  constexpr const char* kPlace = "ps/place";
  const bool is_first = options_.roles.index == 0;
  std::string checkpoint;
  if (is_first && !options_.checkpoints.empty()) {
    saver_ = std::make_unique<TableSaver>(*client_, options_.checkpoints, options_.keep);
  }
  const Deadline deadline = Deadline::after(patience());
  const bool has_begun = agent_->rejoined() && agent_->store()->check({kBegun}, deadline);
  if (is_first && !has_begun) {
    checkpoint = begin_tables();
    begun_ = steps_;
    agent_->store()->set(kPlace, place_, Deadline::after(options_.timeout));
    agent_->store()->set(kBegun, std::to_string(steps_), Deadline::after(options_.timeout));
  } else {
    begun_ = std::stoll(agent_->store()->get(kBegun, deadline));
    place_ = agent_->store()->get(kPlace, deadline);
    steps_ = begun_ + static_cast<int64_t>(client_->steps_before());
    if (saver_ != nullptr) {
      saver_->go_on(steps_);
    }
    while (agent_->store()->check({barrier_key(barriers_, options_.roles.index)}, deadline)) {
      ++barriers_;  // of the process before it
    }
  }
  how_->begin(checkpoint);
}

void ServedTraining::pull() {
  check_works("pull()");
  wholly([&] { how_->pull(); });
}

void ServedTraining::check_works(const char* call) const {
  ARGOSY_CHECK(!is_server(),
               "ps.training",
               "{} is for workers, and this process is a server: it calls serve(), which returns "
               "at the end",
               call);
}

void ServedTraining::wholly(const std::function<void()>& work) {
  if (failed_) {
    throw Error(
        "ps.training",
        "a step of this worker has failed before, and some servers may have it while others "
        "have not: start the job again, from a checkpoint");
  }
  failed_ = true;
  work();
  failed_ = false;
}

std::vector<TableStat> ServedTraining::stats() {
  check_works("stats()");
  return client_->stats();
}

std::vector<ServerStat> ServedTraining::server_stats() {
  check_works("server_stats()");
  return client_->server_stats();
}

void ServedTraining::set_day(int32_t day) {
  check_works("set_day()");
  wholly([&] {
    how_->send_rest();  // so that a worker that is started again does not repeat it
    client_->set_day(day);
  });
}

void ServedTraining::shrink() {
  check_works("shrink()");
  const auto counts = [](const SparseOptions& table) { return table.statistics; };
  ARGOSY_CHECK(std::ranges::any_of(client_->tables().sparse, counts),
               "ps.shrink",
               "no table keeps the shows and clicks by which rows are dropped: set "
               "EmbeddingOptions::statistics");
  if (saver_ != nullptr) {
    (void)saver_->wait();  // all rows change, and a save under way would copy them first
  }
  wholly([&] {
    how_->send_rest();
    client_->shrink();
  });
}

void ServedTraining::save() {
  check_works("save()");
  ARGOSY_CHECK(!options_.checkpoints.empty(),
               "ps.training",
               "save() needs TrainingOptions::checkpoints, a folder, which is empty");
  if (saver_ != nullptr) {
    wholly([&] { how_->send_rest(); });
    saver_->save(steps_, how_->dense(), place_);
  }
}

void ServedTraining::save(const std::string& directory) {
  check_works("save()");
  if (options_.roles.index != 0) {
    return;
  }
  wholly([&] { how_->send_rest(); });
  if (saver_ != nullptr) {
    (void)saver_->wait();  // servers write one at a time
  }
  TableSaver saver(*client_, directory);
  saver.go_on(steps_);
  saver.save(steps_, how_->dense(), place_);
  if (!saver.wait()) {
    throw CheckpointError(
        "ps.save", "a server died while the checkpoint was written: save again", {directory, {}});
  }
}

void ServedTraining::barrier() {
  check_works("barrier()");
  agent_->store()->set(
      barrier_key(barriers_, options_.roles.index), "", Deadline::after(options_.timeout));
  for (int worker = 0; worker < options_.roles.workers; ++worker) {
    await(barrier_key(barriers_, worker), worker, options_.timeout);
  }
  ++barriers_;
}

void ServedTraining::serve() {
  ARGOSY_CHECK(is_server(), "ps.training", "this process is a worker: it does not serve");
  (void)server_->run(*agent_);
  agent_->shutdown(patience());
}

void ServedTraining::step() {
  check_works("step()");
  wholly([&] { how_->step(); });
  ++steps_;
}

void ServedTraining::stop() {
  check_works("stop()");
  wholly([&] { how_->send_rest(); });
  if (saver_ != nullptr && !saver_->wait()) {
    saver_->save(steps_, how_->dense(), place_);
    if (!saver_->wait()) {
      throw CheckpointError(
          "ps.save",
          "two servers died while the last checkpoint was written: the one before it is the newest",
          {options_.checkpoints, {}});
    }
  }
  agent_->store()->set(
      Views::done_key(options_.roles.index), "1", Deadline::after(options_.timeout));
  for (int worker = 0; worker < options_.roles.workers; ++worker) {
    await(Views::done_key(worker), worker, patience());
  }
  how_->end();
  if (options_.roles.index == 0) {
    client_->stop();
  }
  agent_->shutdown(patience());
}

/// Nobody waits for it: it will not come, or makes no more steps.
bool ServedTraining::is_out(int worker, std::chrono::milliseconds patience) {
  rendezvous::Store& store = *agent_->store();
  const int rank = agent_->worker(worker_name(worker)).rank;
  try {
    return rendezvous::is_missed(store, rank, Deadline::after(patience)) ||
           store.check({Views::done_key(worker)}, Deadline::after(patience));
  } catch (const TimeoutError&) {  // the store is slow at the moment
    return false;
  }
}

/// Waits for what a worker will set, as long as it makes steps, or may be started again.
void ServedTraining::await(const std::string& key, int worker, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kSlice{500};
  rendezvous::Store& store = *agent_->store();
  uint64_t pushes = 0;
  Deadline deadline = Deadline::after(patience);
  for (;;) {
    try {
      store.wait({key}, deadline.sooner(Deadline::after(kSlice)));
      return;
    } catch (const TimeoutError&) {
      if (is_out(worker, kSlice)) {
        return;
      }
      if (const uint64_t now = client_->pushes_of(static_cast<uint32_t>(worker)); now != pushes) {
        pushes = now;
        deadline = Deadline::after(patience);
      } else if (deadline.expired()) {
        throw;
      }
    }
  }
}

}  // namespace argosy::ps
