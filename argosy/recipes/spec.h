#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/recipes/row.h"

namespace argosy::recipes {

/// An entry of a table with options, as it is written on a command line:
///
///     adamw                        name
///     adamw:betas=0.9/0.99,eps=1e-6    name:option=value,option=value; lists by "/"
///     crop:padding=4,flip:p=0.3,erase  several, by commas: a word with "=" and no name before it
///                                      belongs to the entry on its left
struct Spec {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> options{};
};

/// Reads entries in this form. Errors: UsageError naming the word that does not fit it.
[[nodiscard]] std::vector<Spec> parse_specs(const Kind& kind, std::string_view text);
/// Reads exactly one entry. Errors: as for parse_specs().
[[nodiscard]] Spec parse_spec(const Kind& kind, std::string_view text);
[[nodiscard]] std::string to_string(const Spec& spec);

/// The given options of an entry, with its table's defaults for the others.
///
///     const Values values(kOptimizers, entry.row, spec.options);
///     values.number("eps");
///
/// Errors of all: UsageError "adamw: unknown option …" with the nearest name, or naming the value
/// that has another kind. A value is checked when it is asked for.
class Values final {
 public:
  Values(const Kind& kind,
         const TableRow& row,
         const std::vector<std::pair<std::string, std::string>>& given);

  [[nodiscard]] const std::string& text(std::string_view name) const;
  /// Returns the value, which must be one of `words`.
  [[nodiscard]] const std::string& word(std::string_view name,
                                        const std::vector<std::string>& words) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] int64_t whole(std::string_view name) const;
  /// Returns true for yes, false for no.
  [[nodiscard]] bool flag(std::string_view name) const;
  /// Returns numbers that are separated by "/". There must be `count` of them unless that is 0.
  [[nodiscard]] std::vector<double> numbers(std::string_view name, std::size_t count = 0) const;
  [[nodiscard]] std::vector<int64_t> wholes(std::string_view name) const;
  [[nodiscard]] bool is_auto(std::string_view name) const { return text(name) == "auto"; }

  /// Returns "adamw:betas=0.9/0.999,…" with every option, so that people see the values in effect.
  [[nodiscard]] std::string to_string() const;

 private:
  [[noreturn]] void wrong(std::string_view name, std::string_view expected) const;

  Kind kind_;
  std::string entry_;
  std::vector<std::pair<std::string, std::string>> values_;
};

}  // namespace argosy::recipes
