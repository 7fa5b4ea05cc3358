// `argosy runs`: a program of its own, which `argosy` becomes; see there.
#include "argosy/program/commands.h"

#include "apps/runs/commands.h"

namespace argosy::runs {
namespace {

int run_command(const program::Words& args) {
  return program::dispatch(
      {.name = "argosy runs",
       .purpose = "List, show and compare training runs.",
       .usage = "<command> [options]",
       .all = {{"ls", "List the runs: start, end, last loss and metric", run_ls},
               {"show", "Show one run: configuration, figures, curves, ranks", run_show},
               {"compare", "Compare the configurations and results of two runs", run_compare}},
       .more = "By default, runs are in the folder runs/; --dir names another folder.\n"
               "Open a run's index.html in a browser to see its page.\n\n"
               "argosy runs <command> --help shows the options of a command. Example:\n  argosy "
               "runs ls\n"},
      args);
}

}  // namespace
}  // namespace argosy::runs

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, argosy::runs::run_command);
}
