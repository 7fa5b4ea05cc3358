#include "argosy/rendezvous/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/rendezvous/clusters/cluster.h"
#include "argosy/rendezvous/endpoint.h"
#include "argosy/rendezvous/job_token.h"

namespace argosy::rendezvous {
namespace {

constexpr int64_t kMostRanks = 1 << 20;

struct Variable {
  const char* name;
  std::string value;
};

std::string assignments(const std::vector<Variable>& variables) {
  std::string text;
  for (const Variable& one : variables) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", one.name, one.value);
  }
  return text;
}

/// Reads the variables of one job; every method throws ConfigError naming what it read.
class Reader {
 public:
  explicit Reader(const Lookup& lookup) : lookup_(lookup) {}

  std::vector<Variable> set_of(std::initializer_list<const char*> names) const {
    std::vector<Variable> found;
    for (const char* name : names) {
      if (auto value = lookup_(name)) {
        found.push_back({name, *std::move(value)});
      }
    }
    return found;
  }

  /// One number that several variables may state; all that are set must agree.
  std::optional<int> number(std::initializer_list<const char*> names, int64_t low) const {
    const std::vector<Variable> found = set_of(names);
    std::optional<int> number;
    for (const Variable& one : found) {
      const std::optional<int64_t> value = strings::parse_int(one.value);
      if (!value || *value < low || *value > kMostRanks) {
        throw ConfigError("rendezvous.environment",
                          fmt::format("{}={}: expected a whole number from {} to {}. Set it as the "
                                      "launcher does, or unset it.",
                                      one.name,
                                      one.value,
                                      low,
                                      kMostRanks));
      }
      if (number && *number != *value) {
        throw ConfigError("rendezvous.environment",
                          fmt::format("contradictory variables: {}. Expected equal values; unset "
                                      "those of the launcher that did not start this process.",
                                      assignments(found)));
      }
      number = static_cast<int>(*value);
    }
    return number;
  }

  std::optional<Endpoint> endpoint(const char* name) const {
    const std::optional<std::string> text = lookup_(name);
    return text ? std::optional(parse_endpoint("rendezvous.environment", name, *text))
                : std::nullopt;
  }

 private:
  const Lookup& lookup_;
};

void read_ranks(const Reader& reader, JobEnvironment& job) {
  const auto rank_variables = reader.set_of({"RANK", "PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK"});
  const auto size_variables =
      reader.set_of({"WORLD_SIZE", "PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE"});
  const auto rank = reader.number({"RANK", "PADDLE_TRAINER_ID", "PADDLE_GLOBAL_RANK"}, 0);
  const auto size = reader.number({"WORLD_SIZE", "PADDLE_TRAINERS_NUM", "PADDLE_GLOBAL_SIZE"}, 1);
  if (rank.has_value() != size.has_value()) {
    throw ConfigError(
        "rendezvous.environment",
        fmt::format("{} set without {}: expected both or neither. Set both, or unset it to run "
                    "one process.",
                    assignments(rank ? rank_variables : size_variables),
                    rank ? "WORLD_SIZE (or PADDLE_TRAINERS_NUM)" : "RANK (or PADDLE_TRAINER_ID)"));
  }
  if (!rank) {
    return;
  }
  if (*rank >= *size) {
    throw ConfigError("rendezvous.environment",
                      fmt::format("{}, {}: expected a rank below the number of ranks. Ranks count "
                                  "from 0.",
                                  assignments(rank_variables),
                                  assignments(size_variables)));
  }
  job.rank = *rank;
  job.world_size = *size;
  const bool torchrun = !reader.set_of({"RANK", "WORLD_SIZE"}).empty();
  const bool paddle = !reader
                           .set_of({"PADDLE_TRAINER_ID",
                                    "PADDLE_GLOBAL_RANK",
                                    "PADDLE_TRAINERS_NUM",
                                    "PADDLE_GLOBAL_SIZE"})
                           .empty();
  job.source = torchrun && paddle ? "torchrun's and Paddle's"
               : torchrun         ? "torchrun's"
                                  : "Paddle's";
}

// Variables that place a process in a job are worth nothing without its rank: a program that took
// itself for a single process would train N times, each alone.
void refuse_leftovers(const Reader& reader) {
  const auto leftovers = reader.set_of({"LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "PADDLE_LOCAL_RANK",
                                        "PADDLE_RANK_IN_NODE",
                                        "PADDLE_LOCAL_SIZE",
                                        "PADDLE_MASTER",
                                        "PADDLE_MASTER_ENDPOINT",
                                        "PADDLE_TRAINER_ENDPOINTS",
                                        "PADDLE_CURRENT_ENDPOINT",
                                        "ARGOSY_STORE"});
  if (!leftovers.empty()) {
    throw ConfigError(
        "rendezvous.environment",
        fmt::format("{} set, but neither RANK and WORLD_SIZE nor PADDLE_TRAINER_ID and "
                    "PADDLE_TRAINERS_NUM. Set these too, or unset the former to run one process.",
                    assignments(leftovers)));
  }
}

void read_local(const Reader& reader, JobEnvironment& job) {
  const auto rank = reader.number({"LOCAL_RANK", "PADDLE_LOCAL_RANK", "PADDLE_RANK_IN_NODE"}, 0);
  const auto size = reader.number({"LOCAL_WORLD_SIZE", "PADDLE_LOCAL_SIZE"}, 1);
  const int unknown = job.world_size == 1 ? 0 : -1;
  job.local_rank = rank.value_or(unknown);
  job.local_world_size = size.value_or(job.world_size == 1 ? 1 : -1);
  job.node_rank = reader.number({"GROUP_RANK", "NODE_RANK", "PADDLE_NODE_RANK"}, 0).value_or(-1);
  const bool impossible = (rank && size && *rank >= *size) || job.local_rank > job.rank ||
                          job.local_world_size > job.world_size;
  if (impossible) {
    throw ConfigError(
        "rendezvous.environment",
        fmt::format("{}: expected LOCAL_RANK below LOCAL_WORLD_SIZE, and neither above those of "
                    "the job (rank {} of {}). Set them as the launcher does, or unset them.",
                    assignments(reader.set_of({"LOCAL_RANK",
                                               "PADDLE_LOCAL_RANK",
                                               "PADDLE_RANK_IN_NODE",
                                               "LOCAL_WORLD_SIZE",
                                               "PADDLE_LOCAL_SIZE"})),
                    job.rank,
                    job.world_size));
  }
}

// Returns the endpoints of all ranks, checked against rank, size and the process's own endpoint.
std::vector<Endpoint> read_endpoints(const Lookup& lookup, const JobEnvironment& job) {
  const std::optional<std::string> list = lookup("PADDLE_TRAINER_ENDPOINTS");
  const std::optional<std::string> own = lookup("PADDLE_CURRENT_ENDPOINT");
  if (own) {
    (void)parse_endpoint("rendezvous.environment", "PADDLE_CURRENT_ENDPOINT", *own);
  }
  if (!list) {
    return {};
  }
  const std::vector<std::string> texts = strings::split(*list, ',');
  std::vector<Endpoint> endpoints;
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    endpoints.push_back(parse_endpoint("rendezvous.environment", "PADDLE_TRAINER_ENDPOINTS", text));
    if (!seen.insert(text).second) {
      throw ConfigError("rendezvous.environment",
                        fmt::format("PADDLE_TRAINER_ENDPOINTS={}: expected each endpoint once, got "
                                    "{} twice. Give each rank a port of its own.",
                                    *list,
                                    text));
    }
  }
  if (static_cast<int>(texts.size()) != job.world_size) {
    throw ConfigError("rendezvous.environment",
                      fmt::format("PADDLE_TRAINER_ENDPOINTS={} lists {} endpoints for {} ranks "
                                  "(PADDLE_TRAINERS_NUM or WORLD_SIZE). List one for each rank.",
                                  *list,
                                  texts.size(),
                                  job.world_size));
  }
  const std::string& place = texts[static_cast<size_t>(job.rank)];
  if (own && *own != place) {
    throw ConfigError("rendezvous.environment",
                      fmt::format("PADDLE_CURRENT_ENDPOINT={} is not where "
                                  "PADDLE_TRAINER_ENDPOINTS={} has rank {}: expected {}. Set the "
                                  "endpoint of this rank, or the rank of this endpoint.",
                                  *own,
                                  *list,
                                  job.rank,
                                  place));
  }
  return endpoints;
}

// In Paddle's own order: MASTER_ADDR:MASTER_PORT, PADDLE_MASTER, the first trainer's endpoint. Its
// launcher says PADDLE_MASTER_ENDPOINT instead with --run_mode rpc.
void read_master(const Reader& reader, const Lookup& lookup, JobEnvironment& job) {
  const std::vector<Endpoint> endpoints = read_endpoints(lookup, job);
  const auto master = reader.set_of({"MASTER_ADDR", "MASTER_PORT"});
  std::optional<Endpoint> paddle_master = reader.endpoint("PADDLE_MASTER");
  if (!paddle_master) {
    paddle_master = reader.endpoint("PADDLE_MASTER_ENDPOINT");
  }
  if (master.size() == 1) {
    const bool has_address = std::string_view(master[0].name) == "MASTER_ADDR";
    throw ConfigError("rendezvous.environment",
                      fmt::format("{} set without {}: expected both or neither. Set the address of "
                                  "rank 0's host and a free port there.",
                                  assignments(master),
                                  has_address ? "MASTER_PORT" : "MASTER_ADDR"));
  }
  std::optional<Endpoint> chosen;
  if (master.size() == 2) {
    chosen = Endpoint{.host = master[0].value,
                      .port = parse_port("rendezvous.environment", "MASTER_PORT", master[1].value)};
  } else if (paddle_master) {
    chosen = std::move(paddle_master);
  } else if (!endpoints.empty()) {
    chosen = endpoints.front();
  }
  if (chosen) {
    job.master_addr = chosen->host;
    job.master_port = chosen->port;
  }
}

void read_store(const Reader& reader, const Lookup& lookup, JobEnvironment& job) {
  if (const std::optional<Endpoint> store = reader.endpoint("ARGOSY_STORE")) {
    job.store_host = store->host;
    job.store_port = store->port;
  }
  const std::string agent_store =
      strings::to_lower(lookup("TORCHELASTIC_USE_AGENT_STORE").value_or("false"));
  job.master_port_is_torchruns = agent_store == "true" || agent_store == "1";
  if (job.master_port_is_torchruns && job.run_id.empty()) {
    job.run_id = lookup("TORCHELASTIC_RUN_ID").value_or("none");
  }
}

// What a queue or mpirun says of a process that it has started itself, without a launcher. Rank 0
// hosts the store, where MASTER_ADDR and MASTER_PORT say or else where all find it by themselves.
void read_task(const ClusterTask& task, const Lookup& lookup, JobEnvironment& job) {
  job.rank = task.task;
  job.world_size = task.tasks;
  job.local_rank = task.local_task;
  job.local_world_size = task.local_tasks;
  job.source = task.system + "'s";
  if (task.tasks == 1) {
    return;
  }
  const ClusterMeeting meeting = meeting_of(task);
  const std::optional<std::string> port = lookup("MASTER_PORT");
  job.master_addr = lookup("MASTER_ADDR").value_or(meeting.host);
  job.master_port =
      port ? parse_port("rendezvous.environment", "MASTER_PORT", *port) : meeting.port;
  const bool told = lookup("MASTER_ADDR") && port;
  if (!told && meeting.host.empty()) {
    throw ConfigError(
        "rendezvous.environment",
        fmt::format("{} says rank {} of {} on several hosts, but not which host rank 0 is on. Give "
                    "all ranks MASTER_ADDR and MASTER_PORT (mpirun -x MASTER_ADDR=… -x "
                    "MASTER_PORT=…, mpiexec -genv MASTER_ADDR …).",
                    task.system,
                    task.task,
                    task.tasks));
  }
  // Where the user said it, the name need not be the same on all hosts.
  if (job.run_id.empty() && !told) {
    job.run_id = task.job;
  }
}

// The batch script's own step, of which there is one however many tasks the job has. It may be
// meant, so this warns.
void warn_of_other_launchers(const Reader& reader, const Lookup& lookup) {
  static std::atomic<bool> told = false;
  const auto size = reader.set_of({"SLURM_NTASKS"});
  const std::optional<int64_t> ranks =
      size.empty() ? std::nullopt : strings::parse_int(size[0].value);
  if (in_slurm_allocation(lookup) && ranks && *ranks > 1 && !told.exchange(true)) {
    log::warn(
        "[{}] SLURM_NTASKS={}, but this process was not started by srun: it works alone. To train "
        "with all of them: srun PROGRAM, or argosy launch PROGRAM.",
        "rendezvous.environment",
        *ranks);
  }
}

}  // namespace

JobEnvironment read_environment() {
  return read_environment([](const char* name) { return env::get(name); });
}

JobEnvironment read_identity(const Lookup& lookup) {
  JobEnvironment job;
  job.token = job_token(lookup);
  job.tls = read_tls(lookup);
  job.run_id = lookup("ARGOSY_RUN_ID").value_or("");
  return job;
}

namespace {

/// Of a server of parameters, Paddle's variables of trainers describe others.
Lookup without_others(const Lookup& all) {
  if (all("TRAINING_ROLE") != "PSERVER") {
    return all;
  }
  return [all](const char* name) {
    return std::string_view(name).starts_with("PADDLE_TRAINER") ? std::nullopt : all(name);
  };
}

JobEnvironment read_own_environment(const Lookup& lookup) {
  const Reader reader(lookup);
  JobEnvironment job = read_identity(lookup);
  read_ranks(reader, job);
  if (job.source.empty()) {
    if (const std::optional<ClusterTask> task = find_task(lookup, TaskFor::kRank)) {
      read_task(*task, lookup, job);
      return job;
    }
    refuse_leftovers(reader);
    warn_of_other_launchers(reader, lookup);
    return job;
  }
  read_local(reader, job);
  read_master(reader, lookup, job);
  read_store(reader, lookup, job);
  if (job.world_size > 1 && job.master_port == 0 && job.store_port == 0) {
    throw ConfigError(
        "rendezvous.environment",
        fmt::format("{} of {} ranks ({} variables), but no place to meet: expected MASTER_ADDR and "
                    "MASTER_PORT, PADDLE_MASTER, PADDLE_MASTER_ENDPOINT, PADDLE_TRAINER_ENDPOINTS "
                    "or ARGOSY_STORE. Set the "
                    "address of rank 0's host and a free port there.",
                    fmt::format("rank {}", job.rank),
                    job.world_size,
                    job.source));
  }
  return job;
}

}  // namespace

JobEnvironment read_environment(const Lookup& lookup) {
  return read_own_environment(without_others(lookup));
}

}  // namespace argosy::rendezvous
