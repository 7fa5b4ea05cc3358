#include "argosy/launch/agent.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/base/deadline.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/base/terminal.h"
#include "argosy/launch/attempt.h"
#include "argosy/launch/nodes/place.h"
#include "argosy/launch/nodes/reach.h"
#include "argosy/launch/options/program.h"
#include "argosy/launch/process_setup.h"
#include "argosy/launch/report_json.h"
#include "argosy/launch/restart_policy.h"
#include "argosy/launch/session.h"
#include "argosy/launch/start_table.h"
#include "argosy/os/addresses.h"
#include "argosy/os/whole_file.h"
#include "argosy/rendezvous/job_token.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

/// Room that rank 0's line has on a terminal.
void settle_terminal(Session& session) {
  JobDescription& job = session.job.description;
  const std::string prefix = line_prefix(session.options.line_prefix, job, 0);
  job.bar = session.output.out().terminal() && terminal::type_redraws();
  job.columns =
      std::max(0, session.output.out().columns() - static_cast<int>(strings::columns(prefix)));
}

/// What was told meanwhile ends the wait where it ends the job; the attempt that follows starts no
/// ranks then.
bool stopped_meanwhile(Session& session, std::optional<int> signal) {
  if (signal) {
    session.journal->tell(
        {.kind = JobEvent::Kind::kInterrupted, .node = session.journal->node(), .signal = *signal});
  }
  for (const JobEvent& event : session.journal->events()) {
    session.state.add(event);
  }
  return session.state.stopping();
}

/// Nothing runs.
void wait_before_restart(Session& session, std::chrono::milliseconds time) {
  const Deadline deadline = Deadline::after(time);
  while (true) {
    if (stopped_meanwhile(session, next_stop_signal(session.signals))) {
      return;
    }
    session.output.flush();
    if (deadline.expired()) {
      return;
    }
    const auto writable = [](const Sink& sink) { return sink.pending() ? sink.poll_fd() : -1; };
    std::array<pollfd, 4> polls{{{session.signals.fd(), POLLIN, 0},
                                 {session.journal->fd(), POLLIN, 0},
                                 {writable(session.output.out()), POLLOUT, 0},
                                 {writable(session.output.err()), POLLOUT, 0}}};
    (void)::poll(polls.data(), polls.size(), static_cast<int>(deadline.remaining().count() + 1));
  }
}

/// A signal ended the wait for the other nodes.
struct Interrupted {
  int signal;
};

std::string token_of_several(const LaunchOptions& options, const JobDescription& job) {
  if (!rendezvous::job_token(env::get).empty()) {
    return job.token;
  }
  if (job.tls.on && !job.tls.from_files()) {
    (void)rendezvous::make_tls(job.tls, "");  // says that it needs one
  }
  // Ranks trim what they find.
  std::string public_token = options.job_id.empty() ? "job" : "job " + options.job_id;
  if (options.one_output && options.nodes.node_rank > 0) {
    return public_token;  // node 0 says it
  }
  fmt::print(
      stderr,
      "[launch] ARGOSY_TOKEN is not set: {} can join the job. Set it to the same secret on all "
      "nodes.\n",
      job.tls.on ? "whoever has a certificate of --tls_ca"
                 : "whoever reaches the port where the nodes meet");
  return public_token;
}

/// What this launcher's connections need. Ranks ask for the name in the certificate of `host`,
/// which hosts the store; "": this launcher does.
rendezvous::Tls settle_tls(JobDescription& job, const std::string& host) {
  rendezvous::Tls tls = rendezvous::make_tls(job.tls, job.token);
  if (job.tls.on && job.tls.from_files() && job.tls.name.empty()) {
    job.tls.name = host.empty() ? rendezvous::name_of_certificate(tls.certificate) : host;
  }
  return tls;
}

/// A pod's name has an address once the cluster has placed the pod. Elsewhere such a name is wrong.
void wait_for_pod_of_meeting(Session& session) {
  const NodeOptions& nodes = session.options.nodes;
  if (!env::get("KUBERNETES_SERVICE_HOST")) {
    return;
  }
  const Deadline deadline = Deadline::after(nodes.timeout);
  for (bool said = false; !os::resolve_host(nodes.meet_host).ok() && !deadline.expired();) {
    if (!std::exchange(said, true)) {
      session.say(fmt::format("[launch] waiting for \"{}\" to get an address from the cluster\n",
                              nodes.meet_host));
      session.output.flush();
    }
    pollfd signals{session.signals.fd(), POLLIN, 0};
    (void)::poll(&signals, 1, 500);
    if (const std::optional<int> signal = next_stop_signal(session.signals)) {
      throw Interrupted{*signal};
    }
  }
}

/// Waits for the other nodes and makes the job theirs too.
void meet_other_nodes(Session& session) {
  JobDescription& job = session.job.description;
  job.token = token_of_several(session.options, job);
  wait_for_pod_of_meeting(session);
  Place place = find_place(session.options.nodes, job.token);
  if (!place.warning.empty()) {
    session.say(fmt::format("[launch] {}\n", place.warning));
  }
  place.meeting.tls = settle_tls(job, place.meeting.hosts ? "" : place.meeting.host);
  const NodeInfo self{.wanted_rank = place.wanted_rank,
                      .host = os::host_name(),
                      .address = place.address,
                      .pid = ::getpid(),
                      .ranks = job.ranks,
                      .servers = job.servers.value_or(-1),
                      .nodes = session.options.nodes.nodes,
                      .ips = session.options.nodes.ips,
                      .master_port = job.master_port,
                      .endpoint_ports = session.job.endpoint_ports,
                      .version = ARGOSY_VERSION,
                      .run_id = job.run_id,
                      .job_id = job.job_id,
                      .grace_ms = session.options.shutdown_timeout.count(),
                      .same_ranks = session.options.dialect == Dialect::kTorchrun ||
                                    session.options.dialect == Dialect::kTorchLaunch};
  session.met = meet(place.meeting, self, [&](const std::string& word) {
    if (!word.empty()) {
      session.say(fmt::format("[launch] {}\n", word));
      session.output.flush();
    }
    if (const std::optional<int> signal = next_stop_signal(session.signals)) {
      throw Interrupted{*signal};
    }
  });
  const JobPlan& plan = session.met->plan;
  take_place(
      session.job, plan, session.met->node, os::host_port(place.meeting.host, place.meeting.port));
  session.journal = std::make_unique<ControlPlane>(
      session.met->store, session.met->node, plan.node_of_arrival, plan.keep_alive);
  session.state = JobState(static_cast<int>(plan.nodes.size()));
  const auto nobody_waits = [&] {  // a signal is the attempt's to read: it tells the other nodes
    pollfd signal{session.signals.fd(), POLLIN, 0};
    return ::poll(&signal, 1, 0) == 0;
  };
  for (const std::string& line : find_unreachable(plan, session.met->node, nobody_waits)) {
    session.say(fmt::format("[launch] {}\n", line));
  }
}

/// Launchers that are connected and not gone: of a machine that fell silent the connection looks
/// alive for a while yet.
bool others_are_here(Session& session) {
  const JobPlan& plan = session.met->plan;
  return std::ranges::any_of(session.met->others(), [&](int arrival) {
    const int node = plan.node_of_arrival.at(static_cast<size_t>(arrival));
    return node > 0 && !session.state.gone_nodes().contains(node);
  });
}

/// Node 0 hosts what the others still read; who falls silent meanwhile is not waited for.
void part_from_other_nodes(Session& session) {
  Deadline patience = Deadline::after(20s);
  while (session.met->server && others_are_here(session) && !patience.expired()) {
    if (const std::optional<int> signal = next_stop_signal(session.signals)) {
      session.stopped_by = signal;
      patience = patience.sooner(Deadline::after(2s));
    }
    for (const JobEvent& event : session.journal->events()) {
      session.state.add(event);
    }
    constexpr auto kLook = 20ms;
    (void)session.met->server->wait_until_members_left(patience.sooner(Deadline::after(kLook)));
  }
  session.journal = std::make_unique<OwnJournal>();
  const bool nobody_listens = session.state.gone_nodes().contains(0);
  session.met->presence->leave("", Deadline::after(nobody_listens ? 0s : 5s));
}

Outcome supervise(Session& session) {
  RestartPolicy restarts(session.options.max_restarts,
                         session.options.restart_usage_errors
                             ? RestartPolicy::UsageErrors::kRestart
                             : RestartPolicy::UsageErrors::kEndTheJob);
  while (true) {
    session.adopted.know_by("ARGOSY_RUN_ID=" + start_id(session.job.description));
    Outcome outcome = Attempt(session).run(restarts);
    if (!outcome.restart_after) {
      return outcome;
    }
    const int next = ++session.job.description.restart;
    session.state.begin(next);
    wait_before_restart(session, *outcome.restart_after);
  }
}

/// Node 0's is as it was asked for, the others' have their number: nodes may share the folder.
std::string json_path(const LaunchOptions& options, int node) {
  return node == 0 ? options.json : fmt::format("{}.node{}", options.json, node);
}

/// Before anything can fail: a former report would be read as this job's.
void begin_report(const LaunchOptions& options) {
  const bool place_is_known = options.nodes.nodes == 1 || options.nodes.node_rank >= 0;
  const Status status = place_is_known
                            ? prepare_json(json_path(options, std::max(0, options.nodes.node_rank)))
                            : check_json(options.json);
  status.or_throw<ConfigError>("launch.json");
}

/// The signal that the exit code stands for.
std::optional<int> interrupted_by(const Session& session, const Outcome& outcome, int code) {
  const bool later = session.stopped_by && code == 128 + *session.stopped_by;
  return later ? session.stopped_by : outcome.signal;
}

/// Writes --json. Returns `code`, or 1 if a job that went well has no report.
int leave_report(const Session& session,
                 const Outcome& outcome,
                 int code,
                 std::chrono::steady_clock::time_point start) {
  const JobDescription& job = session.job.description;
  const std::chrono::duration<double> ran = std::chrono::steady_clock::now() - start;
  const Status written = write_json({.run_id = job.run_id,
                                     .job_id = job.job_id.empty() ? job.run_id : job.job_id,
                                     .program = session.job.program.args,
                                     .ranks = job.world_size,
                                     .nodes = job.nodes,
                                     .restarts = job.restart,
                                     .exit_code = code,
                                     .interrupted_by = interrupted_by(session, outcome, code),
                                     .failure = outcome.failure,
                                     .lost = outcome.lost,
                                     .left_behind = outcome.left_behind,
                                     .seconds = ran.count()},
                                    json_path(session.options, job.node_rank));
  if (!written.ok()) {
    fmt::print(stderr,
               "[launch] --json: {}. See {}\n",
               written.failure().what,
               catalogue_section("launch.json"));
    return code == 0 ? 1 : code;
  }
  return code;
}

/// What only the place among the nodes decides.
void settle_after_meeting(Session& session) {
  const LaunchOptions& options = session.options;
  if (!options.json.empty() && options.nodes.node_rank < 0) {
    prepare_json(json_path(options, session.met->node)).or_throw<ConfigError>("launch.json");
  }
  // torchrun's and Paddle's names say the local rank only: a folder that nodes share would get each
  // file twice.
  if (!session.job.logs.folder.empty() && options.layout == LogLayout::kArgosy) {
    settle_logs(options, session.job);
  }
}

/// As far as a node knows its job before it has met the others.
void forget_what_the_others_decide(Job& job, const NodeOptions& nodes) {
  if (nodes.nodes == 1) {
    return;
  }
  JobDescription& what = job.description;
  what.settled = false;
  what.nodes = nodes.nodes;
  what.node_rank = nodes.node_rank;
  what.master_host = nodes.meet_host;
  what.store = os::host_port(nodes.meet_host, nodes.meet_port);
}

/// 0, or what a shell gives for a program that is not there, which is said.
int check_program(const Program& program) {
  const Result<std::string> path = os::find_program(program.args.front());
  std::error_code ignored;
  const bool folder = path.ok() && std::filesystem::is_directory(*path, ignored);
  const bool found = path.ok() && ::access(path->c_str(), X_OK) == 0;
  const int why = folder ? EACCES : errno;
  if (found && !folder) {
    return 0;
  }
  const SpawnError error =
      explain_spawn(program.args.front(),
                    path.ok() ? Failure::from_errno("execute " + *path, why) : path.failure());
  fmt::print(stderr, "{}", error.text);
  return error.exit_code;
}

int run_job(const LaunchOptions& options) {
  open_missing_streams();
  const rlim_t open_files = raise_open_files();
  os::SignalFd signals = take_over_signals(JobControl::kOurs).or_throw<Error>("launch.signals");
  if (options.leash) {
    stop_when_input_says().or_throw<Error>("launch.leash");
  }
  Adopted adopted;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!options.json.empty() && !options.dry_run) {
    begin_report(options);
  }
  Program program = find_command(options, env::get);
  if (program.error && (options.nodes.nodes == 1 || options.dry_run)) {
    fmt::print(stderr, "{}", program.error->text);
    return program.error->exit_code;
  }  // else the other nodes are told
  Job job = prepare_job(options, this_node(), [&] {
    if (const std::optional<int> signal = next_stop_signal(signals)) {
      throw Interrupted{*signal};
    }
  });
  job.program = std::move(program);
  const std::string misplaced = misplaced_option(options.command);
  const std::string note =
      misplaced.empty()
          ? ""
          : fmt::format("[launch] {} stands after the program's name, so it goes to {}\n",
                        misplaced,
                        options.command.front());
  if (options.dry_run) {
    fmt::print(stderr, "{}", note);
    forget_what_the_others_decide(job, options.nodes);
    fmt::print("{}[launch] nothing was started\n", describe_start(job, StartDetail::kEnvironment));
    (void)std::fflush(stdout);  // what is wrong with the program stands last
    return check_program(job.program);
  }
  Guard guard = Guard::start().or_throw<Error>("launch.guard");
  Session session{.options = options,
                  .signals = std::move(signals),
                  .exits = os::ExitWatch::create().or_throw<Error>("launch.watch"),
                  .adopted = std::move(adopted),
                  .job = std::move(job),
                  .guard = std::move(guard),
                  .output = Output(STDOUT_FILENO, STDERR_FILENO),
                  .open_files = open_files};
  settle_terminal(session);
  if (options.nodes.nodes > 1) {
    meet_other_nodes(session);
    settle_after_meeting(session);
  } else {
    if (!options.nodes.interface.empty()) {  // the ranks are told of it
      (void)os::interface_address(options.nodes.interface).or_throw<ConfigError>("launch.nodes");
    }
    rendezvous::Tls tls = settle_tls(session.job.description, "");
    session.store = rendezvous::StoreServer::start(
        {.token = session.job.description.token, .tls = std::move(tls)});
    session.job.description.store =
        os::host_port(session.job.description.host, session.store->port());
  }
  session.say_for_all(note);
  if (const std::string path = session.job.logs.combined(session.job.description.node_rank);
      !path.empty()) {
    session.combined = std::make_unique<CombinedLog>(path);
  }
  if (const std::string path = session.job.logs.endpoints(); !path.empty()) {
    // Nodes may share the folder: each puts a whole file in its place.
    std::error_code error;  // of which the write tells
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    const Status written =
        os::write_whole(path,
                        fmt::format("PADDLE_TRAINER_ENDPOINTS: \n{}\n",
                                    fmt::join(session.job.description.endpoints, "\n")),
                        {.disk = os::WholeFileOptions::Disk::kNot});
    if (!written.ok()) {
      session.say(fmt::format("[launch] {}: {}\n", path, written.failure().what));
    }
  }
  session.say_for_all(describe_start(
      session.job, options.verbose ? StartDetail::kEnvironment : StartDetail::kSummary));
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = supervise(session);
  session.output.flush();
  if (session.met) {
    part_from_other_nodes(session);
  }
  if (!options.log_dir_given && options.layout == LogLayout::kArgosy) {
    // Both if empty: they were made for what a rank says of its end.
    const std::filesystem::path logs = session.job.logs.folder;
    (void)(::rmdir(logs.c_str()) == 0 && ::rmdir(logs.parent_path().c_str()) == 0);
  }
  const int code = session.hand_over_output(outcome);
  return options.json.empty() ? code : leave_report(session, outcome, code, start);
}

}  // namespace

int run(const LaunchOptions& options) {
  try {
    return run_job(options);
  } catch (const Interrupted& stopped) {
    fmt::print(stderr, "{}", render_stopped(stopped.signal));
    return 128 + stopped.signal;
  }
}

}  // namespace argosy::launch
