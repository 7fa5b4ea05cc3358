#pragma once

#include <string>
#include <vector>

#include "argosy/launch/options/given_options.h"
#include "argosy/launch/remote/hostfile.h"

namespace argosy::launch {

/// A job that one launcher starts on several hosts.
struct RemoteJob {
  std::vector<HostLine> hosts{};
  uint16_t port = 0;                ///< port on the first host where the launchers meet
  std::string argosy{};             ///< path of the command on the hosts
  std::string launcher = "launch";  ///< the command that it stands in for: "torch-launch"
  std::string folder{};             ///< folder on the hosts in which the program runs
  /// Options for the launchers of all hosts, as "--name=value"; then the program with its
  /// arguments.
  std::vector<std::string> options{};
  std::vector<std::string> command{};
};

/// Returns the given options without those that say which nodes there are, because each host gets
/// its own.
[[nodiscard]] std::vector<std::string> options_for_hosts(const GivenOptions& given);

/// Returns `text` as one word of a POSIX shell.
[[nodiscard]] std::string shell_word(const std::string& text);

/// Returns what ssh runs on host `node`, as one line for any shell. It reads the job's secret from
/// standard input, because everybody can read command lines. Standard input is then the leash: the
/// launcher stops when a byte comes or the connection ends (--leash).
[[nodiscard]] std::string remote_command(const RemoteJob& job, int node);

}  // namespace argosy::launch
