#include "argosy/engine/version.h"

#include <torch/utils.h>
#include <torch/version.h>

#include "argosy/engine/random.h"

namespace argosy::engine {

std::string torch_version() {
  return TORCH_VERSION;
}

void seed_everything(uint64_t seed) {
  torch::manual_seed(seed);
}

}  // namespace argosy::engine
