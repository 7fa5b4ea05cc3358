#include "argosy/launch/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include <CLI/CLI.hpp>

namespace argosy::launch {
namespace {

constexpr const char* kWhere = "launch.options";

constexpr const char* kFooter = R"(
Example, one that works here and now:
  argosy launch --nproc_per_node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'

Each rank finds torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, …) and Paddle's
(PADDLE_TRAINER_ID, …) in its environment. When a rank fails, the others are stopped.

Exit code: 0 all ranks ended well; 2 wrong usage; 126 and 127 the program cannot be executed or
found; 128 + n the launcher was stopped by signal n; else that of the rank that failed first
(128 + n when signal n killed it).)";

/// What torchrun and Paddle's launcher know beyond ours: not typing errors, hence not answered with
/// the nearest name.
constexpr auto kNotYet = std::to_array<std::string_view>({"--nnodes",
                                                          "--node_rank",
                                                          "--rank",
                                                          "--master_addr",
                                                          "--master_port",
                                                          "--master",
                                                          "--ips",
                                                          "--host",
                                                          "--rdzv_endpoint",
                                                          "--rdzv_id",
                                                          "--rdzv_backend",
                                                          "--rdzv_conf",
                                                          "--standalone",
                                                          "--local_addr",
                                                          "--max_restarts",
                                                          "--max_restart",
                                                          "--elastic_level",
                                                          "--role",
                                                          "--redirects",
                                                          "-r",
                                                          "--tee",
                                                          "-t",
                                                          "--log_level",
                                                          "--monitor_interval",
                                                          "--start_method",
                                                          "--run_path",
                                                          "--module",
                                                          "-m",
                                                          "--no_python",
                                                          "--gpus",
                                                          "--devices",
                                                          "--job_id",
                                                          "--start_port",
                                                          "--run_mode",
                                                          "--local_ranks_filter"});

class Help final : public CLI::Formatter {
 public:
  Help() { column_width(34); }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: argosy launch [options] [--] program [arguments]\n";
  }
};

/// The parser, its values bound to `options`. Only for the tokens before the program.
struct Parser {
  explicit Parser(LaunchOptions& options)
      : app("Start a program as several ranks on this node and watch over them.\n") {
    app.name("argosy launch");
    app.formatter(std::make_shared<Help>());
    app.footer(kFooter);
    app.set_help_flag("-h,--help", "Print this and exit");
    app.add_option("--nproc_per_node",
                   options.nproc_per_node,
                   "Ranks to start: a number; cpu: one per core;\ngpu: one per GPU; auto: gpu "
                   "where there are "
                   "GPUs,\nelse cpu. Default: 1")
        ->type_name("N|auto|cpu|gpu");
    app.add_option("--log_dir",
                   options.log_dir,
                   "Also write what each rank prints to\nDIR/<run>/rank<k>.log; \"\": no "
                   "files.\nDefault: runs")
        ->type_name("DIR");
    app.add_option(
           "--shutdown_timeout",
           shutdown_timeout,
           fmt::format("Seconds that ranks have to stop before they\nare killed. Default: {}",
                       kShutdownTimeout.count()))
        ->type_name("SECONDS");
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        all.push_back("--" + name);
      }
    }
    return all;
  }

  CLI::App app;
  std::optional<std::string> shutdown_timeout{};
};

std::chrono::milliseconds read_shutdown_timeout(const std::string& text) {
  constexpr double kMost = 86400;
  const std::optional<double> seconds = strings::parse_double(text);
  if (!seconds || !(*seconds >= 0 && *seconds <= kMost)) {
    throw UsageError(
        kWhere,
        fmt::format("--shutdown_timeout: expected seconds from 0 to {}, got \"{}\"", kMost, text));
  }
  return std::chrono::milliseconds(static_cast<int64_t>(*seconds * 1000.0));
}

/// "--nproc-per-node=2" → "--nproc_per_node=2".
std::string normalised(std::string token) {
  const size_t end = std::min(token.find('='), token.size());
  if (token.starts_with("--")) {
    std::replace(token.begin() + 2, token.begin() + static_cast<ptrdiff_t>(end), '-', '_');
  }
  return token;
}

[[noreturn]] void unknown(const std::string& option, const Parser& parser) {
  if (std::ranges::find(kNotYet, normalised(option)) != kNotYet.end()) {
    throw UsageError(
        kWhere,
        fmt::format("{} does not work yet: argosy launch starts the ranks of one node, "
                    "any program, and restarts nothing. See: argosy launch --help",
                    option));
  }
  const std::optional<std::string> meant = strings::closest(normalised(option), parser.names());
  throw UsageError(
      kWhere,
      fmt::format("unknown option {}.{} The program's own options come after its name. See: argosy "
                  "launch --help",
                  option,
                  meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

/// Splits at the program's name: CLI11 sees only what stands before it. (Its own prefix_command()
/// takes a mistyped option for the program.)
size_t read_options(const std::vector<std::string>& args,
                    const Parser& parser,
                    std::vector<std::string>& ours) {
  size_t at = 0;
  while (at < args.size() && args[at].size() > 1 && args[at].front() == '-') {
    if (args[at] == "--") {
      return at + 1;
    }
    const std::string token = normalised(args[at]);
    const size_t equals = token.find('=');
    const std::string name = token.substr(0, equals);
    const CLI::Option* option = parser.app.get_option_no_throw(name);
    if (option == nullptr) {
      unknown(args[at].substr(0, args[at].find('=')), parser);
    }
    ++at;
    if (option->get_items_expected_min() == 0) {
      ours.push_back(token);
      continue;
    }
    if (equals == std::string::npos && at == args.size()) {
      throw UsageError(kWhere, fmt::format("{} needs a value: {}", name, option->get_type_name()));
    }
    const std::string value = equals == std::string::npos ? args[at++] : token.substr(equals + 1);
    if (value.empty()) {  // CLI11 would take "--name=" for a name without a value
      ours.push_back(name);
      ours.emplace_back();
    } else {  // joined, so that a value may start with a dash
      ours.push_back(fmt::format("{}={}", name, value));
    }
  }
  return at;
}

}  // namespace

ParsedLaunch parse_launch(const std::vector<std::string>& args) {
  ParsedLaunch parsed;
  Parser parser(parsed.options);
  std::vector<std::string> ours;
  const size_t program = read_options(args, parser, ours);
  try {
    std::reverse(ours.begin(), ours.end());  // CLI11 takes its tokens from the back
    parser.app.parse(ours);
  } catch (const CLI::CallForHelp&) {
    parsed.help = parser.app.help();
    return parsed;
  } catch (const CLI::ParseError& error) {
    throw UsageError(kWhere, fmt::format("{}. See: argosy launch --help", error.what()));
  }
  parsed.options.log_dir_given = parser.app.count("--log_dir") > 0;
  if (parser.shutdown_timeout) {
    parsed.options.shutdown_timeout = read_shutdown_timeout(*parser.shutdown_timeout);
  }
  parsed.options.command.assign(args.begin() + static_cast<ptrdiff_t>(program), args.end());
  if (parsed.options.command.empty() || parsed.options.command.front().empty()) {
    throw UsageError(kWhere,
                     "no program given: expected argosy launch [options] program [arguments]. "
                     "See: argosy launch --help");
  }
  return parsed;
}

}  // namespace argosy::launch
