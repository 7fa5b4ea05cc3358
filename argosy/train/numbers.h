#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// A number with all its bits; JSON has no NaN and no infinities, they become "nan", "inf", "-inf".
[[nodiscard]] nlohmann::ordered_json to_json(double value);
/// The same back. Errors: CheckpointError when the field is missing or no number.
[[nodiscard]] double number_in(const nlohmann::ordered_json& object, std::string_view field);

}  // namespace argosy::train::detail
