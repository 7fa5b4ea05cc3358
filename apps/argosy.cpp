// The command `argosy`. It links no libtorch, which would cost 0.33 s and 164 MB before main.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/launch/agent.h"
#include "argosy/launch/cluster_options.h"
#include "argosy/launch/environment.h"
#include "argosy/launch/log_reader.h"
#include "argosy/launch/options.h"
#include "argosy/launch/options/option_rows.h"
#include "argosy/launch/options/options_reference.h"
#include "argosy/launch/remote/ssh_job.h"
#include "argosy/os/cpu.h"
#include "argosy/os/subprocess.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

#include "apps/doctor/doctor.h"

#ifdef ARGOSY_STATIC_LAUNCHER
#include <nss.h>
#endif

namespace {

using argosy::launch::Dialect;
using argosy::program::Words;

int launch(const Words& args, Dialect dialect) {
  if (args == Words{"--help_reference"}) {  // docs/reference/launch_options.md
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

int logs(const Words& args) {
  argosy::launch::LogQuery query;
  if (argosy::program::parse_or_help(
          {.what = "Print what the ranks of a run wrote, in the order of time.",
           .name = "argosy logs"},
          {{"FOLDER", "", "Folder of the run. Default: the newest in runs/", &query.folder},
           {"--rank", "LIST", "Only these ranks (0,3)", &query.ranks, {.least = 0}},
           {"--grep", "PATTERN", "Only lines that match (as grep -E)", &query.pattern},
           {"--err", "", "Only standard error", &query.errors_only}},
          args)) {
    return 0;
  }
  return argosy::launch::print_logs(query, stdout) > 0 ? 0 : argosy::program::kFailed;
}

/// A word that resembles no command may be an option of launch, or a program to start.
void look_closer(const std::string& word) {
  if (argosy::program::find_option(argosy::launch::option_rows(), word.substr(0, word.find('='))) !=
      nullptr) {
    throw argosy::UsageError("argosy",
                             fmt::format("unknown option {}. A command comes first, its options "
                                         "after it: argosy launch {} … See: argosy --help",
                                         word,
                                         word));
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(word, ignored)) {
    throw argosy::UsageError(
        "argosy",
        fmt::format("\"{}\" is a file, not a command. To start it: argosy launch {}", word, word));
  }
}

template <Dialect kDialect>
int launch_as(const Words& args) {
  return launch(args, kDialect);
}

// Data and checkpoints are programs beside this one: libcurl and the codecs, with what they need,
// would cost each start of the launcher several milliseconds; what trains needs libtorch.
const argosy::program::Commands kCommands{
    .name = "argosy",
    .purpose = "Argosy: distributed training on libtorch.",
    .usage = "<command> [options]",
    .all =
        {{"launch",
          "Start a program as several ranks and watch over them",
          launch_as<Dialect::kArgosy>},
         {"torchrun", "Like launch, with the options of torchrun", launch_as<Dialect::kTorchrun>},
         {"torch-launch",
          "Like launch, with the options of torch.distributed.launch",
          launch_as<Dialect::kTorchLaunch>},
         {"paddle-launch",
          "Like launch, with the options of paddle.distributed.launch (also: fleetrun)",
          launch_as<Dialect::kPaddle>},
         {"fleetrun", "", launch_as<Dialect::kPaddle>},
         {"doctor", "Check what works on this machine and what does not", argosy::doctor::run},
         {"logs", "Print what the ranks of a run wrote, in the order of time", logs},
         {"data", "Fetch, verify, describe and pack data sets", nullptr, "argosy-data"},
         {"train",
          "Train a model on a data set, without writing a program",
          nullptr,
          "argosy-torch train"},
         {"evaluate",
          "Measure the loss and metrics of a trained model",
          nullptr,
          "argosy-torch evaluate"},
         {"predict", "Predict for pictures with a trained model", nullptr, "argosy-torch predict"},
         {"generate",
          "Continue a text with a trained language model",
          nullptr,
          "argosy-torch generate"},
         {"estimate",
          "Say what memory each process of a training will hold",
          nullptr,
          "argosy-torch estimate"},
         {"checkpoint",
          "List, verify, show, hash, convert and prune checkpoints",
          nullptr,
          "argosy-checkpoint"},
         {"runs", "List, show and compare training runs", nullptr, "argosy-runs"}},
    .more = R"(Example that works on any machine:
  argosy launch --nproc_per_node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'
)",
    .version = ARGOSY_VERSION,
    .unknown = look_closer};

/// A program without shared libraries looks up names by what it has in itself: the system's modules
/// are made for the libc of the system.
void load_no_modules() {
#ifdef ARGOSY_STATIC_LAUNCHER
  __nss_configure_lookup("hosts", "files dns");
#endif
}

/// What trains alone has the kernels, and so the bits, of what argosy launch starts. OpenBLAS looks
/// when it is loaded.
void choose_kernels(const std::string& command) {
  const auto found = std::ranges::find(kCommands.all, command, &argosy::program::Command::name);
  if (found == kCommands.all.end() || !found->becomes.starts_with("argosy-torch")) {
    return;
  }
  for (const std::string& entry : argosy::launch::kernel_environment(
           argosy::os::usable_cpu().avx512, argosy::os::environ_list())) {
    const std::size_t equals = entry.find('=');
    // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  load_no_modules();
  return argosy::program::run_main(argc, argv, [&](Words args) {
    // A link named for a command, for instance torchrun, is that command.
    const std::string name = std::filesystem::path(argc > 0 ? argv[0] : "").filename();
    if (std::ranges::find(kCommands.all, name, &argosy::program::Command::name) !=
        kCommands.all.end()) {
      args.insert(args.begin(), name);
    }
    choose_kernels(args.empty() ? "" : args.front());
    return dispatch(kCommands, args);
  });
}
