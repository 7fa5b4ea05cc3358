#include "argosy/engine/version.h"

#include <torch/version.h>

namespace argosy::engine {

std::string torch_version() {
  return TORCH_VERSION;
}

}  // namespace argosy::engine
