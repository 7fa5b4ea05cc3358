#include "argosy/program/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/strings.h"

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

/// CLI11's words for a check, as a person would say it: "{a,b}", "INT in [1 - 9]".
std::string allowed_values(const std::string& check) {
  if (check.starts_with('{') && check.ends_with('}')) {
    const auto values = strings::split(std::string_view(check).substr(1, check.size() - 2), ',');
    return fmt::format("{}", fmt::join(values, " | "));
  }
  const size_t begin = check.find(" in [");
  const size_t middle = check.find(" - ");
  if (begin != std::string::npos && middle != std::string::npos && check.ends_with(']')) {
    return fmt::format("{} to {}",
                       check.substr(begin + 5, middle - begin - 5),
                       check.substr(middle + 3, check.size() - middle - 4));
  }
  return check;
}

/// What may be given and what is taken without: "(1 to 9;" and "default: 3)", which should not be
/// broken.
std::vector<std::string> notes_of(const CLI::Option& option, const std::string& check) {
  std::vector<std::string> notes;
  if (!check.empty()) {
    notes.push_back(allowed_values(check));
  }
  if (!option.get_default_str().empty()) {
    notes.push_back("default: " + option.get_default_str());
  }
  if (option.get_required() && !option.get_positional()) {
    notes.emplace_back("required");
  }
  for (size_t i = 0; i < notes.size(); ++i) {
    notes[i] = (i == 0 ? "(" : "") + notes[i] + (i + 1 == notes.size() ? ")" : ";");
  }
  return notes;
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

std::string Help::make_description(const CLI::App* app) const {
  std::string text = wrapped(CLI::Formatter::make_description(app));
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return text.empty() ? text : text + "\n\n";
}

std::string Help::make_footer(const CLI::App* app) const {
  const std::string text = wrapped(CLI::Formatter::make_footer(app));
  return text.starts_with('\n') ? text.substr(1) : text;  // CLI11 leaves a line free already
}

std::string Help::make_option(const CLI::Option* option, bool is_positional) const {
  const std::string type = option->get_type_name();
  const size_t colon = type.find(':');
  std::string left = make_option_name(option, is_positional);
  if (!is_positional && option->get_type_size() != 0) {
    left += " " + type.substr(0, colon);
  }
  const std::string check = colon == std::string::npos ? "" : type.substr(colon + 1);
  std::vector<std::string> words = words_of(option->get_description());
  for (const std::string& note : notes_of(*option, check)) {
    const bool fits = strings::columns(note) <= kColumns - kLeft;
    const std::vector<std::string> pieces = fits ? std::vector{note} : words_of(note);
    words.insert(words.end(), pieces.begin(), pieces.end());
  }
  return row_of(std::move(left), words, kLeft);
}

std::string Help::make_option_usage(const CLI::Option* option) const {
  const std::string name = make_option_name(option, true);
  return option->get_required() ? name : "[" + name + "]";
}

}  // namespace argosy::program
