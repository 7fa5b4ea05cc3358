#include <fmt/format.h>

#include "argosy/launch/options/option_rows.h"

namespace argosy::launch {
namespace {

using program::Origin;
using program::Treatment;

constexpr const char* kIntroduction = R"(# Options of argosy launch

Made from the launcher's own table by `argosy launch --help_reference`; a test compares them. An option may be written with dashes or underscores
(`--nproc-per-node`), its value after a space or `=`. Command line before environment: a variable counts only where the option is not given
(Paddle's launcher does it the other way round). Names in one row mean the same.

*same*: as in the tool it comes from; *better*: the same, and the remark says what is better; *no effect*: accepted, the remark says why
nothing needs to happen; *refused*: an error with that text.

| option | from | variables | here | remark |
|---|---|---|---|---|
)";

std::string code(const std::vector<std::string>& names, std::string_view value) {
  std::string text;
  for (const std::string& name : names) {
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  }
  return value.empty() ? text : fmt::format("{} {}", text, value);
}

/// A vertical bar would end the cell.
std::string cell(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    safe += c == '|' ? "\\|" : std::string(1, c);
  }
  return safe;
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

std::string_view name_of(Treatment treatment, Origin origin) {
  switch (treatment) {
    case Treatment::kSame:
      return origin == Origin::kArgosy ? "ours" : "same";
    case Treatment::kBetter:
      return "better";
    case Treatment::kNoEffect:
      return "no effect";
    case Treatment::kRefused:
      return "refused";
    default:
      return "not yet";
  }
}

}  // namespace

std::string options_reference() {
  std::string text = kIntroduction;
  for (const program::Option& row : option_rows()) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n",
                        cell(code(row.all_names(), row.value)),
                        name_of(row.origin),
                        code(row.all_variables(), ""),
                        name_of(row.treatment, row.origin),
                        cell(row.help));
  }
  return text;
}

}  // namespace argosy::launch
