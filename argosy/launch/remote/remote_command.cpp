#include "argosy/launch/remote/remote_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "argosy/os/addresses.h"

namespace argosy::launch {

std::vector<std::string> options_for_hosts(const GivenOptions& given) {
  constexpr auto kOfEachHost = std::to_array<std::string_view>({"hostfile",
                                                                "ssh",
                                                                "standalone",
                                                                "nnodes",
                                                                "node_rank",
                                                                "master_addr",
                                                                "master_port",
                                                                "master",
                                                                "ips",
                                                                "host",
                                                                "start_port",
                                                                "rdzv_endpoint",
                                                                "leash"});
  std::vector<std::string> words;
  for (const program::Option& row : option_rows()) {
    if (std::ranges::count(kOfEachHost, row.key()) > 0) {
      continue;
    }
    for (const Given& value : given.all(row.key())) {
      words.push_back(fmt::format("--{}={}", row.key(), value.value));
    }
  }
  return words;
}

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) {
    word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return word + "'";
}

std::string remote_command(const RemoteJob& job, int node) {
  const HostLine& host = job.hosts.at(static_cast<size_t>(node));
  std::string line = fmt::format(
      "cd {} && IFS= read -r ARGOSY_TOKEN && export ARGOSY_TOKEN && exec {} {} "
      "--leash --nnodes={} --node_rank={} {}",
      shell_word(job.folder),
      shell_word(job.argosy),
      job.launcher,
      job.hosts.size(),
      node,
      shell_word("--master=" + os::host_port(job.hosts.front().address(), job.port)));
  for (const std::string& option : job.options) {
    line += " " + shell_word(option);
  }
  const bool said = std::ranges::any_of(
      job.options, [](const std::string& word) { return word.starts_with("--nproc_per_node="); });
  if (host.slots > 0 && !said) {
    line += fmt::format(" --nproc_per_node={}", host.slots);
  }
  line += " --";
  for (const std::string& word : job.command) {
    line += " " + shell_word(word);
  }
  return "exec sh -c " + shell_word(line);
}

}  // namespace argosy::launch
