#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// Returns the number with all its bits. JSON has no NaN and no infinities: they become "nan",
/// "inf" and "-inf".
[[nodiscard]] nlohmann::ordered_json to_json(double value);
/// Reads such a number. Errors: CheckpointError if the field is missing or not a number.
[[nodiscard]] double number_in(const nlohmann::ordered_json& object, std::string_view field);

}  // namespace argosy::train::detail
