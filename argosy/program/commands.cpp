#include "argosy/program/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "argosy/base/catalogue.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/program/help.h"

#include <nlohmann/json.hpp>

namespace argosy::program {
namespace {

/// Where a program of ours lies: beside this one.
std::filesystem::path place_of(std::string_view program) {
  return env::own_program().parent_path() / program;
}

bool is_here(const Command& command) {
  std::error_code ignored;
  return command.becomes.empty() ||
         std::filesystem::exists(place_of(strings::split(command.becomes, ' ').front()), ignored);
}

std::string help_of(const Commands& table) {
  std::string text = fmt::format(
      "{}\n\nUsage: {} {}\n\nCommands:\n", wrapped(table.purpose), table.name, table.usage);
  size_t width = 0;
  for (const Command& command : table.all) {
    width = std::max(width, command.name.size());
  }
  std::vector<std::string_view> absent;
  for (const Command& command : table.all) {
    if (!is_here(command)) {
      absent.push_back(command.name);
    } else if (!command.what.empty()) {
      text += row(command.name, command.what, width + 4);
    }
  }
  if (!absent.empty()) {
    text += '\n' + wrapped(fmt::format("Not installed here: {}", fmt::join(absent, ", "))) + '\n';
  }
  if (!table.version.empty()) {
    text += "\nOptions:\n" +
            row("-h, --help", "Print this and exit; after a command: its options", width + 4) +
            row("--version", "Print the version and exit", width + 4);
  }
  return text + '\n' + table.more;
}

[[noreturn]] void refuse(const Commands& table, const std::string& word) {
  std::vector<std::string> names{"--help"};
  if (!table.version.empty()) {
    names.emplace_back("--version");
  }
  for (const Command& command : table.all) {
    names.emplace_back(command.name);
  }
  const auto meant = strings::closest(word, names);
  if (!meant && table.unknown != nullptr) {
    table.unknown(word);
  }
  throw UsageError(
      "program.arguments",
      fmt::format("unknown command {0} {1}.{2} See: {0} --help",
                  table.name,
                  word,
                  meant ? fmt::format(" Did you mean {} {}?", table.name, *meant) : ""));
}

/// What is wrong, and where it is explained.
void say(const std::exception& error) {
  const std::string entry = catalogue_entry(error.what());
  std::string text = error.what();
  if (text.ends_with('.')) {
    text.pop_back();
  }
  const char* end = text.ends_with('?') ? "" : ".";
  fmt::print(stderr, "{}{}\n", text, entry.empty() ? "" : fmt::format("{} See {}", end, entry));
}

}  // namespace

int dispatch(const Commands& table, const Words& args) {
  const std::string word = args.empty() ? "" : args.front();
  if (word.empty() || word == "-h" || word == "--help" || word == "help") {
    fmt::print(word.empty() ? stderr : stdout, "{}", help_of(table));
    return word.empty() ? kUsage : 0;
  }
  if (!table.version.empty() && (word == "--version" || word == "version")) {
    fmt::print("{} {}\n", table.name, table.version);
    return 0;
  }
  const auto command = std::ranges::find(table.all, word, &Command::name);
  if (command == table.all.end()) {
    refuse(table, word);
  }
  const Words rest(args.begin() + 1, args.end());
  if (command->run != nullptr) {
    return command->run(rest);
  }
  Words words = strings::split(command->becomes, ' ');
  const std::string program = words.front();
  words.erase(words.begin());
  words.insert(words.end(), rest.begin(), rest.end());
  become(program, std::move(words));
}

int run_main(int argc, char** argv, const std::function<int(const Words& args)>& run) {
  try {
    const int code = run({argv + std::min(argc, 1), argv + argc});
    const bool lost_now = std::fflush(stdout) != 0;
    if (lost_now) {
      std::perror("argosy: cannot write to standard output");
    } else if (std::ferror(stdout) != 0) {  // at an earlier flush, whose reason is not known
      fmt::print(stderr, "argosy: a part of the output could not be written\n");
    }
    return code == 0 && std::ferror(stdout) != 0 ? kFailed : code;
  } catch (const UsageError& error) {
    say(error);
    return kUsage;
  } catch (const ConfigError& error) {
    say(error);
    return kUsage;
  } catch (const std::exception& error) {
    say(error);
    return kFailed;
  }
}

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void become(std::string_view program, Words args) {
  args.insert(args.begin(), place_of(program).string());
  std::vector<char*> argv;
  for (std::string& word : args) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::fflush(nullptr);
  ::execv(argv[0], argv.data());
  throw Error("program.become",
              fmt::format("cannot start {}: {}. It comes with make build, make install, the bundle "
                          "and Debian's package {}; the wheel is the launcher alone",
                          args[0],
                          errno_message(errno),
                          program == "argosy-torch" ? program : "argosy"));
}

}  // namespace argosy::program
