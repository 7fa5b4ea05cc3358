// The command `argosy`. It links no libtorch, which would cost 0.33 s and 164 MB before main.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/launch/agent.h"
#include "argosy/launch/options.h"
#include "argosy/launch/options/option_rows.h"

namespace {

constexpr int kFailed = 1;
constexpr int kUsage = 2;

constexpr const char* kHelp = R"(Argosy: distributed training on libtorch.

Usage: argosy <command> [options]

Commands:
  launch      Start a program as several ranks and watch over them

Options:
  -h, --help     Print this and exit; argosy <command> --help for a command's options
  --version      Print the version and exit

Example, one that works here and now:
  argosy launch --nproc_per_node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'
)";

int launch(const std::vector<std::string>& args) {
  if (args == std::vector<std::string>{"--help_reference"}) {  // docs/reference/launch_options.md
    fmt::print("{}", argosy::launch::options_reference());
    return 0;
  }
  const argosy::launch::ParsedLaunch parsed = argosy::launch::parse_launch(args);
  if (parsed.help) {
    fmt::print("{}", *parsed.help);
    return 0;
  }
  argosy::log::set_identity("launch");
  return argosy::launch::run(parsed.options, argosy::launch::host_store);
}

int dispatch(std::vector<std::string> args) {
  const std::string command = args.empty() ? "" : args.front();
  if (command == "-h" || command == "--help" || command == "help") {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (command == "--version" || command == "version") {
    fmt::print("argosy {}\n", ARGOSY_VERSION);
    return 0;
  }
  if (command == "launch") {
    return launch({args.begin() + 1, args.end()});
  }
  if (command.empty()) {
    fmt::print(stderr, "{}", kHelp);
    return kUsage;
  }
  const auto meant = argosy::strings::closest(command, {"launch", "--help", "--version"});
  if (command.starts_with('-') && !meant) {
    throw argosy::UsageError("argosy",
                             fmt::format("unknown option {}. A command comes first, its options "
                                         "after it: argosy launch {} … See: argosy --help",
                                         command,
                                         command));
  }
  throw argosy::UsageError(
      "argosy",
      fmt::format("unknown command \"{}\".{} See: argosy --help",
                  command,
                  meant ? fmt::format(" Did you mean argosy {}?", *meant) : ""));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = dispatch({argv + 1, argv + argc});
    if (std::fflush(stdout) != 0) {
      std::perror("argosy: cannot write to standard output");
      return code == 0 ? kFailed : code;
    }
    return code;
  } catch (const argosy::UsageError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kFailed;
  }
}
