// `argosy runs`: a program of its own, which `argosy` becomes; see there.
#include "argosy/program/commands.h"

#include "apps/runs/commands.h"

namespace argosy::runs {
namespace {

int run_command(const program::Words& args) {
  return program::dispatch(
      {.name = "argosy runs",
       .purpose = "Runs: what was trained, with which options, and what came of it.",
       .usage = "<command> [options]",
       .all = {{"ls", "List the runs: when, how they ended, their last loss and metric", run_ls},
               {"show", "Show one: configuration, figures, curves, ranks", run_show},
               {"compare",
                "Say how two differ, in configuration and results; overlay curves",
                run_compare}},
       .more = "Runs lie in runs/ of the folder that they were started in; --dir names another.\n"
               "A run's page for a browser is its index.html. A command's options:\n"
               "argosy runs <command> --help.\nExample:\n  argosy runs ls\n"},
      args);
}

}  // namespace
}  // namespace argosy::runs

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, argosy::runs::run_command);
}
