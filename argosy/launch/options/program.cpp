#include "argosy/launch/options/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/base/error.h"
#include "argosy/os/subprocess.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kProgramNotFound = 127;
constexpr int kProgramNotExecutable = 126;

bool is_environment(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "pyvenv.cfg", ignored) || fs::exists(folder / "conda-meta", ignored);
}

std::optional<std::string> find_python(const Lookup& lookup, const fs::path& launcher) {
  if (std::optional<std::string> chosen = lookup("PYTHON_EXEC")) {
    return chosen;
  }
  std::vector<fs::path> environments;
  if (fs::path ours = launcher.parent_path().parent_path(); is_environment(ours)) {
    environments.push_back(std::move(ours));
  }
  if (const std::optional<std::string> venv = lookup("VIRTUAL_ENV")) {
    environments.emplace_back(*venv);
  }
  for (const fs::path& environment : environments) {
    const fs::path python = environment / "bin/python";
    if (::access(python.c_str(), X_OK) == 0) {
      return python.string();
    }
  }
  for (const char* name : {"python3", "python"}) {
    if (Result<std::string> found = os::find_program(name); found.ok()) {
      return *std::move(found);
    }
  }
  return std::nullopt;
}

bool is_script(const std::string& program) {
  return program.ends_with(".py") || program.ends_with(".pyxes");
}

}  // namespace

Program find_command(const LaunchOptions& options, const Lookup& lookup, const fs::path& launcher) {
  const std::string& name = options.command.front();
  const bool script = !options.module && is_script(name);
  const auto finished = [&](std::vector<std::string> args) {
    Program program{.args = std::move(args)};
    if (options.pass_local_rank) {
      program.local_rank_at = program.args.size() - (options.command.size() - 1);
    }
    return program;
  };
  if (options.no_python || (!script && !options.module)) {
    return finished(options.command);
  }
  const auto cannot = [&](const std::string& why, int code) {
    const std::string text = fmt::format(
        "[launch] cannot start \"{}\": {} See {}\n", name, why, catalogue_section("cannot-start"));
    return Program{.args = options.command, .error = SpawnError{text, code}};
  };
  if (script && ::access(name.c_str(), R_OK) != 0) {  // Python's own word comes once per rank
    const int error = errno;
    const bool absent = error == ENOENT || error == ENOTDIR;
    return cannot(errno_message(error) + (absent ? ". Check the path." : ". Whose file is it?"),
                  absent ? kProgramNotFound : kProgramNotExecutable);
  }
  const std::optional<std::string> python = find_python(lookup, launcher);
  if (!python) {
    return cannot("no python3 in PATH, nor in VIRTUAL_ENV. Install it, or name it in PYTHON_EXEC.",
                  kProgramNotFound);
  }
  if (lookup("PYTHON_EXEC") && !os::find_program(*python).ok()) {
    return cannot("there is no PYTHON_EXEC=" + *python + ".", kProgramNotFound);
  }
  std::vector<std::string> args{*python, "-u"};
  if (options.module) {
    args.emplace_back("-m");
  }
  args.insert(args.end(), options.command.begin(), options.command.end());
  return finished(std::move(args));
}

std::string misplaced_option(const std::vector<std::string>& command) {
  constexpr std::array<std::string_view, 7> kOurs{"--nproc_per_node",
                                                  "--nnodes",
                                                  "--node_rank",
                                                  "--master_port",
                                                  "--rdzv_endpoint",
                                                  "--max_restarts",
                                                  "--hostfile"};
  for (size_t i = 1; i < command.size(); ++i) {
    std::string name = command[i].substr(0, command[i].find('='));
    std::replace(name.begin() + std::min<ptrdiff_t>(2, std::ssize(name)), name.end(), '-', '_');
    if (std::ranges::count(kOurs, name) > 0) {
      return command[i];
    }
  }
  return "";
}

std::vector<std::string> Program::for_rank(int local_rank) const {
  std::vector<std::string> command = args;
  if (local_rank_at) {
    command.insert(command.begin() + static_cast<ptrdiff_t>(*local_rank_at),
                   fmt::format("--local_rank={}", local_rank));
  }
  return command;
}

}  // namespace argosy::launch
