#pragma once

#include <string>
#include <vector>

#include "argosy/launch/options/given_options.h"
#include "argosy/launch/remote/hostfile.h"

namespace argosy::launch {

/// A job that one launcher starts on several hosts.
struct RemoteJob {
  std::vector<HostLine> hosts{};
  uint16_t port = 0;                ///< where the launchers meet, on the first host
  std::string argosy{};             ///< path of the command there
  std::string launcher = "launch";  ///< what it stands in for: "torch-launch"
  std::string folder{};             ///< where the program runs there
  /// Options that all hosts' launchers get, "--name=value", and the program with its arguments.
  std::vector<std::string> options{};
  std::vector<std::string> command{};
};

/// What was given, but what says who the nodes are: that is said for each host.
[[nodiscard]] std::vector<std::string> options_for_hosts(const GivenOptions& given);

/// `text` as one word of a POSIX shell.
[[nodiscard]] std::string shell_word(const std::string& text);

/// What ssh runs on host `node`, one line for whatever shell the user has there. It reads the job's
/// secret from standard input, for command lines can be read by everybody, and what comes after it
/// is the leash: the launcher stops when a byte comes or the connection ends (--leash).
[[nodiscard]] std::string remote_command(const RemoteJob& job, int node);

}  // namespace argosy::launch
