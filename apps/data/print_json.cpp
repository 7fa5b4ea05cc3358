#include "apps/data/print_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace argosy::datatool {

void print_json(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace argosy::datatool
