#include "argosy/launch/options/options_reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "argosy/launch/options/option_rows.h"
#include "argosy/program/help.h"

namespace argosy::launch {
namespace {

using program::Origin;
using program::Treatment;

constexpr const char* kIntroduction = R"(# Options of argosy launch

`argosy launch --help_reference` prints this page from the launcher's own table,
and a test compares the two. Dashes and underscores are the same in an option's
name (`--nproc-per-node`). A value follows after a space or `=`. Names of one
entry mean the same.

The command line wins over the environment: a variable counts only if its option
is not given. Paddle's launcher does it the other way round.

Each entry names the launchers that know the option. *same* means that it does
what it does there; *better* means the same, with the difference that the entry
names.
)";

/// Escapes what Markdown would take for a tag.
std::string plain(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '<' ? "\\<" : std::string(1, c);
  }
  return safe;
}

std::string code(const std::vector<std::string>& names) {
  return fmt::format("`{}`", fmt::join(names, "`, `"));
}

std::string_view name_of(Origin origin) {
  switch (origin) {
    case Origin::kBoth:
      return "torchrun, Paddle";
    case Origin::kTorchrun:
      return "torchrun";
    case Origin::kPaddle:
      return "Paddle";
    default:
      return "Argosy";
  }
}

std::string heading_of(const program::Option& option) {
  switch (option.treatment) {
    case Treatment::kNoEffect:
      return "Accepted without effect";
    case Treatment::kRefused:
      return "Refused";
    default:
      return option.group.empty() ? "Not shown by --help" : std::string(option.group);
  }
}

/// One option as an item of a list; neighbours with the same text share one.
std::string entry_of(std::span<const program::Option> options) {
  const program::Option& first = options.front();
  std::vector<std::string> names;
  std::vector<std::string> variables;
  for (const program::Option& option : options) {
    names.push_back(code(option.all_names()));
    names.back() += option.value.empty() ? "" : fmt::format(" {}", option.value);
    const std::vector<std::string> own = option.all_variables();
    variables.insert(variables.end(), own.begin(), own.end());
  }
  std::string_view how;
  if (first.origin != Origin::kArgosy && first.works()) {
    how = first.treatment == Treatment::kBetter ? "; better" : "; same";
  }
  std::string text = fmt::format(
      "{} ({}{}): {}.", fmt::join(names, "; "), name_of(first.origin), how, plain(first.help));
  if (!variables.empty()) {
    text +=
        fmt::format(" {}: {}.", variables.size() > 1 ? "Variables" : "Variable", code(variables));
  }
  return program::row("-", text, 4);
}

}  // namespace

std::string options_reference() {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const char* heading : {"Ranks", "Nodes", "Output", "Failures"}) {
    sections.emplace_back(heading, "");
  }
  const std::span<const program::Option> rows = option_rows();
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    while (end < rows.size() && rows[end].help == rows[i].help) {
      ++end;
    }
    const std::string heading = heading_of(rows[i]);
    auto section = std::ranges::find(sections, heading, &decltype(sections)::value_type::first);
    if (section == sections.end()) {
      section = sections.insert(sections.end(), {heading, ""});
    }
    section->second += entry_of(rows.subspan(i, end - i));
    i = end;
  }
  std::string text = kIntroduction;
  for (const auto& [heading, entries] : sections) {
    text += fmt::format("\n## {}\n\n{}", heading, entries);
  }
  return text;
}

}  // namespace argosy::launch
