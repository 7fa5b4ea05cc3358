#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "argosy/base/terminal.h"
#include "argosy/program/command_line.h"
#include "argosy/program/commands.h"

#include "apps/data/arguments.h"
#include "apps/data/command.h"
#include "apps/data/info_report.h"
#include "apps/data/source_argument.h"
#include <nlohmann/json.hpp>

namespace argosy::datatool {
int run_info(const std::vector<std::string>& args) {
  std::string what;
  std::string path;
  std::string sheet;
  bool json = false;
  bool all = false;
  if (program::parse_or_help(
          {.what = "Say what a data set holds: samples, classes, shapes, values.\n"
                   "Exit codes: 0 done, 1 it or one of its samples cannot be used, 2 wrong usage.",
           .name = "argosy data info",
           .end =
               "Example, after argosy data fetch mnist: argosy data info mnist --sheet mnist.html"},
          {{"NAME|PATH",
            "",
            "A set's name, or a file or folder that shows what it is",
            &what,
            {.required = true}},
           {"PATH", "", "Folder of a named set. Default: where fetch puts it", &path},
           {"--sheet",
            "FILE",
            "Show the classes and some samples on this page, .html",
            &sheet,
            {.check = runs::page_name}},
           {"--all", "", "Decode every picture for the values instead of 1,000", &all},
           program::json_option(&json)},
          args)) {
    return 0;
  }
  const std::shared_ptr<const datasets::Source> source = open_argument(what, path);
  const Findings findings{.source = source.get(),
                          .survey = datasets::survey(*source, {.pictures = all ? 0 : 1000})};
  if (!sheet.empty()) {
    runs::write_picture_page(sheet, info_sheet(findings));
  }
  if (json) {
    program::print_json(info_json(findings));
  } else {
    fmt::print(
        "{}",
        info_text(
            findings, std::max(20, terminal::columns(STDOUT_FILENO)), bar_style_of(STDOUT_FILENO)));
  }
  return findings.survey.unusable == 0 ? 0 : 1;
}

}  // namespace argosy::datatool
