#include "argosy/program/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/strings.h"
#include "argosy/program/command_line.h"

namespace argosy::program {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kLeft = 30;  // of the options' names

std::vector<std::string> words_of(std::string_view lines) {
  std::string text(lines);
  for (char& c : text) {
    c = c == '\n' ? ' ' : c;
  }
  std::vector<std::string> words = strings::split(text, ' ');
  std::erase(words, "");
  return words;
}

/// Words in lines that begin at column `indent`; the first begins there already.
std::string joined(const std::vector<std::string>& words, size_t indent) {
  std::string text;
  size_t column = indent;
  for (const std::string& word : words) {
    const size_t width = strings::columns(word);
    if (column > indent && column + 1 + width > kColumns) {
      text += '\n' + std::string(indent, ' ');
      column = indent;
    }
    text += column > indent ? " " + word : word;
    column += width + (column > indent ? 1 : 0);
  }
  return text;
}

/// What may be given and what is taken without: "(1 to 9;" and "default: 3)", which should not be
/// broken.
std::vector<std::string> notes_of(const Option& option) {
  const Limits& limits = option.limits;
  std::vector<std::string> notes;
  if (!limits.words.empty()) {
    notes.push_back(fmt::format("{}", fmt::join(strings::split(limits.words, '|'), " | ")));
  } else if (std::isfinite(limits.least) && std::isfinite(limits.most)) {
    notes.push_back(fmt::format("{} to {}", limits.least, limits.most));
  }
  if (const std::string value = held(option); !limits.required && !value.empty()) {
    notes.push_back("default: " + value);
  }
  if (limits.required && !option.positional()) {
    notes.emplace_back("required");
  }
  for (size_t i = 0; i < notes.size(); ++i) {
    notes[i] = (i == 0 ? "(" : "") + notes[i] + (i + 1 == notes.size() ? ")" : ";");
  }
  return notes;
}

/// What an option does, and its notes, which stay together where they fit.
std::vector<std::string> words_of(const Option& option) {
  std::vector<std::string> words = words_of(option.help);
  for (const std::string& note : notes_of(option)) {
    const bool fits = strings::columns(note) <= kColumns - kLeft;
    const std::vector<std::string> pieces = fits ? std::vector{note} : words_of(note);
    words.insert(words.end(), pieces.begin(), pieces.end());
  }
  return words;
}

std::string row_of(std::string left, const std::vector<std::string>& words, size_t indent) {
  left.insert(0, "  ");
  const size_t width = strings::columns(left);
  left += width < indent ? std::string(indent - width, ' ') : '\n' + std::string(indent, ' ');
  return left + joined(words, indent) + '\n';
}

}  // namespace

std::string wrapped(std::string_view text) {
  std::vector<std::string> lines = strings::split(text, '\n');
  for (std::string& line : lines) {
    if (strings::columns(line) > kColumns) {
      line = joined(words_of(line), 0);
    }
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string row(std::string_view left, std::string_view text, size_t indent) {
  return row_of(std::string(left), words_of(text), indent);
}

std::string help(const HelpText& about, std::span<const Option> options) {
  std::string usage(about.usage.empty() ? "[options]" : about.usage);
  std::vector<std::pair<std::string_view, std::string>> groups{{"Arguments", ""}, {"Options", ""}};
  groups[1].second = row("-h, --help", "Print this and exit", kLeft);
  for (const Option& option : options) {
    if (option.group.empty()) {
      continue;
    }
    if (option.positional() && about.usage.empty()) {
      usage += option.limits.required ? fmt::format(" {}", option.names)
                                      : fmt::format(" [{}]", option.names);
    }
    const std::string_view name = option.positional() ? "Arguments" : option.group;
    auto group = std::ranges::find(groups, name, &decltype(groups)::value_type::first);
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {name, ""});
    }
    std::string left = option.positional() ? std::string(option.names)
                                           : fmt::format("{}", fmt::join(option.all_names(), ", "));
    left += option.value.empty() ? "" : fmt::format(" {}", option.value);
    group->second += row_of(std::move(left), words_of(option), kLeft);
  }
  std::rotate(groups.begin() + 1, groups.begin() + 2, groups.end());  // --help at the end
  std::string text = fmt::format("{}\n\nUsage: {} {}\n", wrapped(about.what), about.name, usage);
  for (const auto& [name, rows] : groups) {
    text += rows.empty() ? "" : fmt::format("\n{}:\n{}", name, rows);
  }
  return about.end.empty() ? text : fmt::format("{}\n{}\n", text, wrapped(about.end));
}

}  // namespace argosy::program
