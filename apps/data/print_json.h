#pragma once

#include <nlohmann/json_fwd.hpp>

namespace argosy::datatool {

/// Onto standard output, indented, with an end of line. Bytes that are no UTF-8 (paths may have
/// such) are replaced.
void print_json(const nlohmann::ordered_json& json);

}  // namespace argosy::datatool
