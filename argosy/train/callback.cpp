#include "argosy/train/callback.h"

#include <nlohmann/json.hpp>

namespace argosy::train {

nlohmann::ordered_json Callback::state() const {
  return {};
}

void Callback::load_state(const nlohmann::ordered_json& /*state*/) {}

}  // namespace argosy::train
