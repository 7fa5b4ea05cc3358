#include "argosy/launch/remote/ssh_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "argosy/base/catalogue.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"
#include "argosy/launch/job.h"
#include "argosy/launch/output.h"
#include "argosy/launch/process_setup.h"
#include "argosy/launch/rank_output.h"
#include "argosy/launch/stop_policy.h"
#include "argosy/os/random.h"
#include "argosy/os/subprocess.h"
#include "argosy/rendezvous/clusters/cluster.h"
#include "argosy/rendezvous/job_token.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kSshFailed = 255;
/// What the launchers there need on top of their ranks' grace, before their ssh is killed.
constexpr auto kSshJobForTheNetwork = 20s;
constexpr auto kForADeath = 5s;  ///< of a killed process

/// ssh to one host.
struct Remote {
  std::string host{};
  os::Subprocess ssh;
  os::UniqueFd leash{};
  RankOutput output;
  bool ended = false;
};

class SshJob final {
 public:
  SshJob(const LaunchOptions& options, const RemoteJob& job)
      : options_(options),
        job_(job),
        signals_(take_over_signals(JobControl::kDefault).or_throw<Error>("launch.signals")),
        output_(STDOUT_FILENO, STDERR_FILENO),
        policy_(options.shutdown_timeout + kSshJobForTheNetwork) {}

  int run() {
    const std::string given = rendezvous::job_token(env::get);
    const std::string token = given.empty() ? os::random_hex(16) : given;
    for (size_t node = 0; node < job_.hosts.size(); ++node) {
      start(static_cast<int>(node), token);
    }
    while (std::ranges::any_of(remotes_, [](const auto& remote) { return !remote->ended; })) {
      turn();
    }
    hand_over();
    const bool by_us = code_ == 0 || code_ == 128 + SIGTERM;  // what the leash brings about
    const int code = policy_.interrupted_by() && by_us ? 128 + *policy_.interrupted_by() : code_;
    return incomplete_ ? std::max(code, 1) : code;
  }

 private:
  void start(int node, const std::string& token);
  void turn();
  void take_ends();
  void pull();
  void kill_or_abandon();
  void hand_over();

  const LaunchOptions& options_;
  const RemoteJob& job_;
  os::SignalFd signals_;
  Output output_;
  StopPolicy policy_;
  std::vector<std::unique_ptr<Remote>> remotes_{};
  int code_ = 0;
  bool pulled_ = false;
  bool incomplete_ = false;                        ///< output was lost, or an ssh left behind
  std::optional<Clock::time_point> abandon_at_{};  ///< set once they were killed
};

/// "ssh", or $ARGOSY_SSH_COMMAND ("ssh -p 2222 -i key"). Nobody can answer questions.
std::vector<std::string> ssh_words() {
  std::vector<std::string> words =
      strings::split(env::get("ARGOSY_SSH_COMMAND").value_or("ssh"), ' ');
  std::erase(words, "");
  words.insert(words.end(), {"-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "-T"});
  return words;
}

void SshJob::start(int node, const std::string& token) {
  constexpr const char* kWhere = "launch.ssh";
  const std::string& host = job_.hosts[static_cast<size_t>(node)].host;
  std::vector<std::string> args = ssh_words();
  args.push_back(host);
  args.push_back(remote_command(job_, node));
  os::Pipe in = os::make_pipe().or_throw<Error>(kWhere);
  os::Pipe out = os::make_pipe().or_throw<Error>(kWhere);
  os::Pipe err = os::make_pipe().or_throw<Error>(kWhere);
  for (const os::Pipe* pipe : {&out, &err}) {
    os::set_nonblocking(pipe->read.get()).or_throw<Error>(kWhere);
  }
  os::Subprocess ssh = os::Subprocess::spawn({.args = args,
                                              .env = os::environ_list(),
                                              .stdin_fd = in.read.get(),
                                              .stdout_fd = out.write.get(),
                                              .stderr_fd = err.write.get()})
                           .or_throw<Error>(kWhere);
  os::write_all(in.write.get(), token + "\n").or_throw<Error>(kWhere);
  const RankOutput::Start routes{
      .live = node == 0, .out = {.sink = &output_.out()}, .err = {.sink = &output_.err()}};
  remotes_.push_back(std::make_unique<Remote>(
      Remote{.host = host,
             .ssh = std::move(ssh),
             .leash = std::move(in.write),
             .output = RankOutput(routes, std::move(out.read), std::move(err.read))}));
}

/// The first time a byte, then the end.
void SshJob::pull() {
  for (const auto& remote : remotes_) {
    if (!remote->ended && remote->leash) {
      if (pulled_) {
        remote->leash.close();
      } else {
        (void)os::write_all(remote->leash.get(), "\n");  // EPIPE: it has ended
      }
    }
  }
  pulled_ = true;
}

bool said(const Remote& remote, std::string_view start) {
  return std::ranges::any_of(remote.output.last_lines(),
                             [&](const std::string& line) { return line.starts_with(start); });
}

void SshJob::take_ends() {
  for (const auto& remote : remotes_) {
    if (remote->ended) {
      continue;
    }
    const Result<std::optional<os::Exit>> exit = remote->ssh.try_wait();
    if (!exit.ok() || !*exit) {
      continue;
    }
    remote->ended = true;
    remote->output.forward_rest();
    // The launcher there may have said its last word, and ssh lost the connection before its code.
    const bool stopped = pulled_ && (*exit)->shell_code() == kSshFailed &&
                         said(*remote, "[launch] stopped by SIGTERM");
    const int code = stopped ? 128 + SIGTERM : (*exit)->shell_code();
    // ssh's own failure has the same code as a rank that returned -1, of which the launcher tells.
    const bool ssh_failed = code == kSshFailed && !said(*remote, "[launch] exit code 255");
    if (ssh_failed) {
      output_.say(fmt::format(
          "[launch] ssh to {} failed with exit code 255; see its message above. See {}\n",
          remote->host,
          catalogue_section("launch.ssh_failed")));
    }
    // A launcher's word counts more than ssh's, unless it says that we stopped it.
    if (code != 0 && (code_ == 0 || (code_ == 1 && !pulled_))) {
      code_ = ssh_failed ? 1 : code;
    }
    if (code != 0) {
      policy_.stop(Clock::now(), 5s);  // the others agree among themselves, unless one never came
    }
  }
}

void SshJob::turn() {
  std::vector<pollfd> polls{{signals_.fd(), POLLIN, 0}};
  for (Sink* sink : {&output_.out(), &output_.err()}) {
    if (sink->pending()) {
      polls.push_back({sink->poll_fd(), POLLOUT, 0});
    }
  }
  for (const auto& remote : remotes_) {
    if (!remote->ended) {
      polls.push_back({remote->ssh.pidfd(), POLLIN, 0});
    }
    for (const int fd : remote->output.fds()) {
      polls.push_back({fd, POLLIN, 0});
    }
  }
  const std::optional<Clock::time_point> wake = abandon_at_ ? abandon_at_ : policy_.wake();
  const auto left = wake ? std::chrono::ceil<std::chrono::milliseconds>(*wake - Clock::now()) : 1h;
  (void)::poll(polls.data(),
               polls.size(),
               static_cast<int>(std::clamp<std::chrono::milliseconds>(left, 0ms, 1h).count()));
  while (const std::optional<int> signal = signals_.next()) {
    if (*signal != SIGCHLD && *signal != SIGUSR1 && *signal != SIGUSR2) {
      policy_.interrupt(*signal, Clock::now());
    }
  }
  for (const auto& remote : remotes_) {
    for (const int fd : remote->output.fds()) {
      remote->output.forward(fd);
    }
  }
  take_ends();
  if (policy_.due(Clock::now())) {
    pull();
  }
  kill_or_abandon();
  output_.flush();
}

/// ssh itself, when what it runs has had its time.
void SshJob::kill_or_abandon() {
  if (!policy_.given_up(Clock::now())) {
    return;
  }
  const bool killed = abandon_at_.has_value();
  abandon_at_ = abandon_at_.value_or(Clock::now() + kForADeath);
  for (const auto& remote : remotes_) {
    if (!remote->ended && !killed) {
      (void)remote->ssh.signal(SIGKILL);
    } else if (!remote->ended && Clock::now() >= *abandon_at_) {
      output_.say(fmt::format("[launch] ssh to {} did not end after SIGKILL and was left behind\n",
                              remote->host));
      remote->ssh.abandon();
      remote->ended = true;
      incomplete_ = true;
    }
  }
}

/// The readers get what is left; after a signal nobody waits for one that pauses.
void SshJob::hand_over() {
  output_.hand_over(policy_.interrupted_by() ? kPatienceOnceStopped : options_.reader_patience,
                    signals_.fd(),
                    [&] { return next_stop_signal(signals_).has_value(); });
  if (output_.cut()) {
    output_.say(fmt::format("[launch] standard output ends here: {}\n",
                            errno_message(output_.out().error())));
    output_.flush();
    incomplete_ = incomplete_ || options_.log_dir.empty();  // else the hosts have logs
  }
}

}  // namespace

RemoteJob plan_remote_job(const LaunchOptions& options, const GivenOptions& given) {
  std::error_code error;
  RemoteJob job{.hosts = read_hostfile(options.hostfile),
                .argosy = env::own_program().string(),
                .launcher = command_of(options.dialect),
                .folder = std::filesystem::current_path(error).string(),
                .options = options_for_hosts(given),
                .command = options.command};
  job.port = rendezvous::meeting_of({.job = os::random_hex(8)}).port;
  return job;
}

int run_by_ssh(const LaunchOptions& options, const RemoteJob& job) {
  if (options.dry_run) {
    RemoteJob shown = job;
    shown.options = secrets::hidden(shown.options);
    shown.command = secrets::hidden(shown.command);
    for (size_t node = 0; node < job.hosts.size(); ++node) {
      fmt::print("[launch] would run: {} {} {}\n",
                 fmt::join(ssh_words(), " "),
                 job.hosts[node].host,
                 shell_word(remote_command(shown, static_cast<int>(node))));
    }
    return 0;
  }
  open_missing_streams();
  return SshJob(options, job).run();
}

}  // namespace argosy::launch
