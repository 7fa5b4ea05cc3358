// `argosy runs`: a program of its own, which `argosy` becomes; see there.
#include <algorithm>

#include "argosy/runs/command.h"

#include "apps/run_main.h"

int main(int argc, char** argv) {
  return argosy::apps::run_main([&] {
    return argosy::runs::run_command({argv + std::min(argc, 1), argv + argc});
  });
}
