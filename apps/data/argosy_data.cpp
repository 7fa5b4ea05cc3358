// `argosy data`: a program of its own, which `argosy` becomes; see there.
#include <fmt/format.h>

#include "argosy/datasets/sets.h"
#include "argosy/program/commands.h"

#include "apps/data/command.h"

namespace argosy::datatool {
namespace {

int run(const program::Words& args) {
  std::string more = "Names:\n";
  for (const datasets::Row* set : datasets::rows()) {
    more += fmt::format("  {:<14} {}\n", set->name, set->title);
  }
  more +=
      "\nargosy data <command> --help for a command's options. Example:\n"
      "  argosy data fetch mnist\n";
  return program::dispatch(
      {.name = "argosy data",
       .purpose = "Data sets: fetch, check, look at and pack them.",
       .usage = "<command> NAME|PATH [options]",
       .all = {{"fetch", "Bring the files of a data set, once however many ask", run_fetch},
               {"verify", "Say which files are whole, missing or damaged", run_verify},
               {"info", "Samples, classes, shapes, values; a sheet of samples as PNG", run_info},
               {"pack", "Write a record file that reads back faster", run_pack}},
       .more = std::move(more)},
      args);
}

}  // namespace
}  // namespace argosy::datatool

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, argosy::datatool::run);
}
