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
      "\nargosy data <command> --help shows the options of a command. Example:\n"
      "  argosy data fetch mnist\n";
  return program::dispatch(
      {.name = "argosy data",
       .purpose = "Fetch, verify, describe and pack data sets.",
       .usage = "<command> NAME|PATH [options]",
       .all = {{"fetch", "Download the files of a data set and check them", run_fetch},
               {"verify", "Find missing and damaged files", run_verify},
               {"info", "Describe samples, classes, shapes and values", run_info},
               {"pack", "Write a record file, which is faster to read", run_pack},
               {"criteo", "Draw a log of clicks whose truth is known", run_criteo}},
       .more = std::move(more)},
      args);
}

}  // namespace
}  // namespace argosy::datatool

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, argosy::datatool::run);
}
