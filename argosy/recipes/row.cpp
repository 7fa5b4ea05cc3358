#include "argosy/recipes/row.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::recipes {

void throw_unknown(const Kind& kind, std::string_view name, const std::vector<std::string>& names) {
  const auto meant = strings::closest(name, names);
  throw UsageError(kind.where,
                   fmt::format("unknown {} \"{}\"{}. See: argosy train --list {}",
                               kind.word,
                               name,
                               meant ? fmt::format(": nearest is {}", *meant) : "",
                               kind.plural));
}

std::string listing(const std::vector<TableRow>& rows) {
  std::size_t width = 0;
  for (const TableRow& row : rows) {
    width = std::max(width, row.name.size());
  }
  std::string text;
  for (const TableRow& row : rows) {
    text += fmt::format("{:<{}}  {}\n", row.name, width, row.what);
    for (const OptionRow& option : row.options) {
      const std::string word =
          option.fallback.empty() ? option.name : option.name + "=" + option.fallback;
      text += fmt::format("{:{}}    {:<22} {}\n", "", width, word, option.help);
    }
  }
  return text;
}

}  // namespace argosy::recipes
