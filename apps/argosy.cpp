// The command `argosy`. It links no libtorch, which would cost 0.33 s and 164 MB before main.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/doctor/doctor.h"
#include "argosy/launch/agent.h"
#include "argosy/launch/cluster_options.h"
#include "argosy/launch/log_reader.h"
#include "argosy/launch/options.h"
#include "argosy/launch/options/option_rows.h"
#include "argosy/launch/remote/ssh_job.h"

#include "apps/become.h"
#include "apps/run_main.h"

namespace {

using argosy::apps::kFailed;
using argosy::apps::kUsage;

constexpr const char* kHelp = R"(Argosy: distributed training on libtorch.

Usage: argosy <command> [options]

Commands:
  launch         Start a program as several ranks and watch over them
  torchrun       The same for a line that was written for torchrun
  torch-launch   The same for python -m torch.distributed.launch
  doctor         Say what works on this machine, and what does not
  logs           Print what the ranks of a run have printed, in order of time
  data           Fetch, check, look at and pack data sets
  train          Train a model on a data set, without writing a program
  evaluate       Loss and metrics of what was trained
  predict        What a trained model says of pictures
  checkpoint     List, verify, show, hash, convert and prune checkpoints
  runs           List, show and compare what was trained
  paddle-launch  The same for python -m paddle.distributed.launch (also: fleetrun)

Options:
  -h, --help     Print this and exit; after a command: its options
  --version      Print the version and exit

Example, one that works here and now:
  argosy launch --nproc_per_node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'
)";

using argosy::launch::Dialect;

/// Names under which the launcher stands in for another tool's; a link of that name to `argosy`
/// does the same.
const std::map<std::string, Dialect> kLaunchers{{"launch", Dialect::kArgosy},
                                                {"torchrun", Dialect::kTorchrun},
                                                {"torch-launch", Dialect::kTorchLaunch},
                                                {"paddle-launch", Dialect::kPaddle},
                                                {"fleetrun", Dialect::kPaddle}};

int launch(const std::vector<std::string>& args, Dialect dialect) {
  if (args == std::vector<std::string>{"--help_reference"}) {  // docs/reference/launch_options.md
    fmt::print("{}", argosy::launch::options_reference());
    return 0;
  }
  const argosy::launch::ParsedLaunch parsed =
      argosy::launch::parse_launch(args, argosy::env::get, dialect);
  if (parsed.help) {
    fmt::print("{}", *parsed.help);
    return 0;
  }
  argosy::log::set_identity("launch");
  if (parsed.options.ssh) {
    return argosy::launch::run_by_ssh(
        parsed.options, argosy::launch::plan_remote_job(parsed.options, parsed.given));
  }
  if (parsed.options.through_srun) {
    return argosy::launch::become_srun(parsed.options, args);
  }
  return argosy::launch::run(parsed.options);
}

int logs(const std::vector<std::string>& args) {
  const argosy::launch::ParsedLogs parsed = argosy::launch::parse_logs(args);
  if (parsed.help) {
    fmt::print("{}", *parsed.help);
    return 0;
  }
  return argosy::launch::print_logs(parsed.query, stdout) > 0 ? 0 : kFailed;
}

/// Commands that are programs beside this one: libcurl and the codecs, with what they need, would
/// cost each start of the launcher several milliseconds.
const std::map<std::string, std::string> kPrograms{
    {"checkpoint", "argosy-checkpoint"}, {"data", "argosy-data"}, {"runs", "argosy-runs"}};

/// Those of them that need tensors: one program, which is told the command's name.
const std::vector<std::string> kTorchCommands{"train", "evaluate", "predict"};

[[noreturn]] void unknown(const std::string& command) {
  std::vector<std::string> names{"--help", "--version", "doctor", "logs"};
  for (const auto& [name, program] : kPrograms) {
    names.push_back(name);
  }
  names.insert(names.end(), kTorchCommands.begin(), kTorchCommands.end());
  for (const auto& [name, dialect] : kLaunchers) {
    names.push_back(name);
  }
  const auto meant = argosy::strings::closest(command, names);
  if (!meant && argosy::launch::find_option(command.substr(0, command.find('='))) != nullptr) {
    throw argosy::UsageError("argosy",
                             fmt::format("unknown option {}. A command comes first, its options "
                                         "after it: argosy launch {} … See: argosy --help",
                                         command,
                                         command));
  }
  std::error_code ignored;
  if (!meant && std::filesystem::is_regular_file(command, ignored)) {
    throw argosy::UsageError(
        "argosy",
        fmt::format(
            "\"{}\" is a file, not a command. To start it: argosy launch {}", command, command));
  }
  throw argosy::UsageError(
      "argosy",
      fmt::format("unknown command \"{}\".{} See: argosy --help",
                  command,
                  meant ? fmt::format(" Did you mean argosy {}?", *meant) : ""));
}

int dispatch(const std::string& program, const std::vector<std::string>& args) {
  const size_t slash = program.rfind('/');
  const std::string own_name = slash == std::string::npos ? program : program.substr(slash + 1);
  if (const auto linked = kLaunchers.find(own_name); linked != kLaunchers.end()) {
    return launch(args, linked->second);
  }
  const std::string command = args.empty() ? "" : args.front();
  if (command == "-h" || command == "--help" || command == "help") {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (command == "--version" || command == "version") {
    fmt::print("argosy {}\n", ARGOSY_VERSION);
    return 0;
  }
  if (command.empty()) {
    fmt::print(stderr, "{}", kHelp);
    return kUsage;
  }
  if (command == "doctor") {
    return argosy::doctor::run({args.begin() + 1, args.end()});
  }
  if (command == "logs") {
    return logs({args.begin() + 1, args.end()});
  }
  if (const auto program = kPrograms.find(command); program != kPrograms.end()) {
    argosy::apps::become(program->second, {args.begin() + 1, args.end()});
  }
  if (std::ranges::find(kTorchCommands, command) != kTorchCommands.end()) {
    argosy::apps::become("argosy-torch", args);
  }
  const auto launcher = kLaunchers.find(command);
  if (launcher == kLaunchers.end()) {
    unknown(command);
  }
  return launch({args.begin() + 1, args.end()}, launcher->second);
}

}  // namespace

int main(int argc, char** argv) {
  return argosy::apps::run_main([&] {
    return dispatch(argc > 0 ? argv[0] : "argosy", {argv + std::min(argc, 1), argv + argc});
  });
}
