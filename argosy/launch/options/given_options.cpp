#include "argosy/launch/options/given_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

#include <CLI/CLI.hpp>

namespace argosy::launch {
namespace {

constexpr const char* kFooter = R"(
Options of torchrun and of Paddle's launcher that are not shown here:
  docs/reference/launch_options.md

Example, one that works here and now:
  argosy launch --nproc_per_node 2 sh -c 'echo "rank $RANK of $WORLD_SIZE"'

Each rank finds torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR,
…) and Paddle's (PADDLE_TRAINER_ID, …) in its environment. A program whose name
ends in .py runs under the Python of the environment. When a rank fails, the
others are stopped.

Exit code: 0 all ranks ended well; 2 wrong usage; 126 and 127 the program cannot
be executed or found; 128 + n the launcher was stopped by signal n; else that of
the rank that failed first (128 + n when signal n killed it).)";

class Help final : public CLI::Formatter {
 public:
  Help() { column_width(30); }
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    return "Usage: " + app->get_name() + " [options] [--] program [arguments]\n";
  }
};

/// "a b c d" in lines of at most `width`.
std::string wrapped(std::string_view text, size_t width) {
  std::string result;
  size_t column = 0;
  for (const std::string& word : strings::split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      result += '\n';
      column = 0;
    }
    result += (column > 0 ? " " : "") + word;
    column += word.size() + (column > 0 ? 1 : 0);
  }
  return result;
}

/// "--nproc-per-node=2" → "--nproc_per_node=2".
std::string normalised(std::string token) {
  const size_t end = std::min(token.find('='), token.size());
  if (token.starts_with("--")) {
    std::replace(token.begin() + 2, token.begin() + static_cast<ptrdiff_t>(end), '-', '_');
  }
  return token;
}

[[noreturn]] void unknown(const std::string& option) {
  std::vector<std::string> names{"--help"};
  for (const OptionRow& row : option_rows()) {
    std::ranges::copy(row.all_names(), std::back_inserter(names));
  }
  std::optional<std::string> meant = strings::closest(normalised(option), names);
  const auto starts = std::ranges::find_if(
      names, [&](const std::string& name) { return name.starts_with(normalised(option)); });
  if (!meant && option.size() > 3 && starts != names.end()) {
    meant = *starts;
  }
  throw UsageError(
      "launch.options",
      fmt::format("unknown option {}.{} The program's own options come after its name. See: argosy "
                  "launch --help",
                  option,
                  meant ? fmt::format(" Did you mean {}?", *meant) : ""));
}

void refuse_what_does_not_work(const OptionRow& row, const std::string& written) {
  if (row.treatment == Treatment::kRefused) {
    throw UsageError("launch.options", fmt::format("{} is refused: {}", written, row.remark));
  }
}

/// "-n2": a short option that takes a value, and the value.
bool joined_value(const std::string& token) {
  const bool one_dash = token.size() > 2 && token[0] == '-' && token[1] != '-';
  const OptionRow* row = one_dash ? find_option(token.substr(0, 2)) : nullptr;
  const bool works = row != nullptr &&
                     (row->treatment == Treatment::kSame || row->treatment == Treatment::kBetter);
  return works && !row->flag() && token[2] >= '0' && token[2] <= '9';
}

}  // namespace

void GivenOptions::add(const OptionRow& row, std::string value, std::string source) {
  values_[std::string(row.key())].push_back({std::move(value), std::move(source)});
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
  CommandLine line;
  size_t at = 0;
  while (at < args.size() && args[at].size() > 1 && args[at].front() == '-') {
    if (args[at] == "--") {
      ++at;
      break;
    }
    const std::string token = normalised(args[at]);
    const size_t equals = token.find('=');
    const std::string name = token.substr(0, equals);
    if (name == "-h" || name == "--help") {
      line.help = true;
      return line;
    }
    const std::string written = args[at].substr(0, args[at].find('='));
    const OptionRow* row = find_option(name);
    if (row == nullptr && joined_value(token)) {  // "-n2", as mpirun takes it
      line.options.add(*find_option(token.substr(0, 2)), token.substr(2), token.substr(0, 2));
      ++at;
      continue;
    }
    if (row == nullptr) {
      unknown(written);
    }
    ++at;
    refuse_what_does_not_work(*row, written);
    if (row->flag()) {
      line.options.add(*row, equals == std::string::npos ? "1" : token.substr(equals + 1), written);
      continue;
    }
    if (equals == std::string::npos && at == args.size()) {
      throw UsageError("launch.options", fmt::format("{} needs a value: {}", written, row->value));
    }
    line.options.add(
        *row, equals == std::string::npos ? args[at++] : token.substr(equals + 1), written);
  }
  line.command.assign(args.begin() + static_cast<ptrdiff_t>(at), args.end());
  return line;
}

void read_variables(GivenOptions& options, const Lookup& lookup) {
  for (const OptionRow& row : option_rows()) {
    const bool works = row.treatment == Treatment::kSame || row.treatment == Treatment::kBetter;
    if (!works || options.has(row.key())) {
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
  // CLI11 formats what our table says; it parses nothing, for it takes a mistyped option for the
  // program (prefix_command) and knows no option of which only the name is recognised.
  CLI::App app(what + "\n");
  app.name("argosy " + command);
  app.formatter(std::make_shared<Help>());
  app.footer(kFooter);
  app.set_help_flag("-h,--help", "Print this and exit");
  std::vector<std::string> unused(option_rows().size());
  for (size_t i = 0; i < option_rows().size(); ++i) {
    const OptionRow& row = option_rows()[i];
    if (row.group.empty()) {
      continue;
    }
    std::string names;
    for (const std::string& name : row.all_names()) {
      names += (names.empty() ? "" : ",") + name;
    }
    const std::string text = wrapped(row.remark, 50);
    CLI::Option* option =
        row.flag() ? app.add_flag_function(
                         names, [](int64_t) {}, text)
                   : app.add_option(names, unused[i], text)->type_name(std::string(row.value));
    option->group(std::string(row.group));
  }
  return app.help();
}

}  // namespace argosy::launch
