#include "argosy/recipes/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::recipes {
namespace {

std::pair<std::string, std::string> option_of(const Kind& kind, std::string_view word) {
  const std::size_t middle = word.find('=');
  ARGOSY_CHECK(middle != std::string_view::npos && middle > 0,
               kind.where,
               "\"{}\": expected option=value behind a {}'s colon, as in name:option=value,"
               "option=value",
               word,
               kind.word);
  return {std::string(word.substr(0, middle)), std::string(word.substr(middle + 1))};
}

/// "name" or "name:option=value".
Spec begin_spec(const Kind& kind, std::string_view word) {
  const std::size_t colon = word.find(':');
  Spec spec{.name = std::string(word.substr(0, colon))};
  if (colon != std::string_view::npos) {
    spec.options.push_back(option_of(kind, word.substr(colon + 1)));
  }
  return spec;
}

/// Whether the word goes on with the options of the one before.
bool is_option(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && word.substr(0, equals).find(':') == std::string::npos;
}

}  // namespace

std::vector<Spec> parse_specs(const Kind& kind, std::string_view text) {
  std::vector<Spec> specs;
  for (const std::string& piece : strings::split(text, ',')) {
    const std::string_view word = strings::trim(piece);
    ARGOSY_CHECK(!word.empty() && word.front() != ':',
                 kind.where,
                 "\"{}\": expected the name of a {} between the commas. See: argosy train --list "
                 "{}",
                 text,
                 kind.word,
                 kind.plural);
    if (!is_option(word)) {
      specs.push_back(begin_spec(kind, word));
      continue;
    }
    ARGOSY_CHECK(!specs.empty(),
                 kind.where,
                 "\"{}\": expected the name of a {} before its options: name:{}",
                 text,
                 kind.word,
                 word);
    specs.back().options.push_back(option_of(kind, word));
  }
  return specs;
}

Spec parse_spec(const Kind& kind, std::string_view text) {
  std::vector<Spec> specs = parse_specs(kind, text);
  ARGOSY_CHECK(specs.size() == 1,
               kind.where,
               "expected one {}, got {}: \"{}\"",
               kind.word,
               specs.size(),
               text);
  return std::move(specs.front());
}

std::string to_string(const Spec& spec) {
  std::string text = spec.name;
  char before = ':';
  for (const auto& [name, value] : spec.options) {
    text += fmt::format("{}{}={}", before, name, value);
    before = ',';
  }
  return text;
}

Values::Values(const Kind& kind,
               const TableRow& row,
               const std::vector<std::pair<std::string, std::string>>& given)
    : kind_(kind), entry_(row.name) {
  std::vector<std::string> names;
  for (const OptionRow& option : row.options) {
    names.push_back(option.name);
    values_.emplace_back(option.name, option.fallback);
  }
  for (const auto& [name, value] : given) {
    const auto at = std::ranges::find(values_, name, &std::pair<std::string, std::string>::first);
    if (at == values_.end()) {
      const auto meant = strings::closest(name, names);
      throw UsageError(
          kind.where,
          fmt::format("{} has no option \"{}\"{}{}",
                      entry_,
                      name,
                      meant ? fmt::format(": nearest is {}", *meant) : "",
                      names.empty() ? ", nor any other"
                                    : fmt::format(". It has: {}", fmt::join(names, ", "))));
    }
    at->second = value;
  }
}

void Values::wrong(std::string_view name, std::string_view expected) const {
  throw UsageError(
      kind_.where,
      fmt::format("{}:{}: expected {}, got \"{}\"", entry_, name, expected, text(name)));
}

const std::string& Values::text(std::string_view name) const {
  const auto at = std::ranges::find(values_, name, &std::pair<std::string, std::string>::first);
  ARGOSY_INVARIANT(at != values_.end(), kind_.where);
  return at->second;
}

const std::string& Values::word(std::string_view name,
                                const std::vector<std::string>& words) const {
  if (std::ranges::find(words, text(name)) == words.end()) {
    wrong(name, fmt::format("one of {}", fmt::join(words, ", ")));
  }
  return text(name);
}

double Values::number(std::string_view name) const {
  const auto value = strings::parse_double(text(name));
  if (!value.has_value() || !std::isfinite(*value)) {
    wrong(name, "a number");
  }
  return *value;
}

int64_t Values::whole(std::string_view name) const {
  const auto value = strings::parse_int(text(name));
  if (!value.has_value()) {
    wrong(name, "a whole number");
  }
  return *value;
}

bool Values::flag(std::string_view name) const {
  return word(name, {"yes", "no"}) == "yes";
}

std::vector<double> Values::numbers(std::string_view name, std::size_t count) const {
  std::vector<double> all;
  for (const std::string& piece : strings::split(text(name), '/')) {
    const auto value = strings::parse_double(piece);
    if (!value.has_value() || !std::isfinite(*value)) {
      wrong(name, "numbers with \"/\" between them");
    }
    all.push_back(*value);
  }
  if (count != 0 && all.size() != count) {
    wrong(name, fmt::format("{} numbers with \"/\" between them", count));
  }
  return all;
}

std::vector<int64_t> Values::wholes(std::string_view name) const {
  std::vector<int64_t> all;
  for (const std::string& piece : strings::split(text(name), '/')) {
    const auto value = strings::parse_int(piece);
    if (!value.has_value()) {
      wrong(name, "whole numbers with \"/\" between them");
    }
    all.push_back(*value);
  }
  return all;
}

std::string Values::to_string() const {
  return recipes::to_string(Spec{.name = entry_, .options = values_});
}

}  // namespace argosy::recipes
