#pragma once

#include <string>

#include <nlohmann/json.hpp>

// Internal to the room: converts values to state.json and rank<k>.json.
namespace argosy::checkpoint {

/// Returns values as JSON text. JSON has no NaN and no infinity: they become {"float": "nan"},
/// "inf" or "-inf". Doubles are restored bit for bit (all NaNs as one).
/// Errors: CheckpointError for a string that is not UTF-8, and for bytes.
[[nodiscard]] std::string values_text(const nlohmann::ordered_json& values);

/// Reads such a text. Errors: CheckpointError with path.
[[nodiscard]] nlohmann::ordered_json parse_values(const std::string& text, const std::string& path);

}  // namespace argosy::checkpoint
