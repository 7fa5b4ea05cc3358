#include "argosy/launch/options/given_options.h"

#include <utility>

#include "argosy/program/command_line.h"

namespace argosy::launch {
namespace {

constexpr const char* kFooter =
    R"(Options of torchrun and of Paddle's launcher that are not shown here:
  docs/reference/launch_options.md

Example that works on any machine:
  argosy launch --nproc_per_node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'

Each rank finds torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
…) and Paddle's (PADDLE_TRAINER_ID, …) in its environment. A program whose name
ends in .py runs under the Python of the environment. When a rank fails, the
others are stopped.

Exit code: 0 all ranks ended well; 2 wrong usage; 126 and 127 the program cannot
be executed or found; 128 + n the launcher was stopped by signal n; else that of
the rank that failed first (128 + n when signal n killed it).)";

}  // namespace

void GivenOptions::add(const program::Option& row, std::string value, std::string source) {
  values_[std::string(row.key())].push_back({std::move(value), std::move(source)});
}

void GivenOptions::set(std::string_view key, Given given) {
  values_.insert_or_assign(std::string(key), std::vector<Given>{std::move(given)});
}

bool GivenOptions::has(std::string_view key) const {
  return values_.contains(key);
}

std::optional<Given> GivenOptions::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second.back());
}

std::vector<Given> GivenOptions::all(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<Given>() : found->second;
}

std::optional<std::string_view> GivenOptions::first_of(
    std::initializer_list<std::string_view> keys) const {
  for (const bool on_line : {true, false}) {
    for (const std::string_view key : keys) {
      const std::optional<Given> given = find(key);
      if (given && given->source.starts_with('-') == on_line) {
        return key;
      }
    }
  }
  return std::nullopt;
}

CommandLine read_command_line(const std::vector<std::string>& args) {
  program::TakenApart taken = program::take_apart(
      "launch.options", "argosy launch", option_rows(), args, program::Between::kNothing);
  CommandLine line{.help = taken.help, .command = std::move(taken.words)};
  for (program::GivenOption& given : taken.options) {
    line.options.add(*given.option, std::move(given.value), std::move(given.written));
  }
  return line;
}

void read_variables(GivenOptions& options, const Lookup& lookup) {
  for (const program::Option& row : option_rows()) {
    if (!row.works() || options.has(row.key())) {
      continue;
    }
    for (const std::string& variable : row.all_variables()) {
      if (std::optional<std::string> value = lookup(variable.c_str())) {
        options.add(row, *std::move(value), variable);
        break;
      }
    }
  }
}

std::string launch_help(const std::string& command, const std::string& what) {
  return program::help({.what = what,
                        .name = "argosy " + command,
                        .end = kFooter,
                        .usage = "[options] [--] program [arguments]"},
                       option_rows());
}

}  // namespace argosy::launch
