// `argosy runs`: a program of its own, which `argosy` becomes; see there.
#include "argosy/program/commands.h"

#include "apps/runs/command.h"

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, argosy::runs::run_command);
}
