#pragma once

#include <string>

#include <nlohmann/json.hpp>

// Internal to the room: how values become state.json and rank<k>.json.
namespace argosy::checkpoint {

/// JSON knows no NaN and no infinity: they become {"float": "nan"}, "inf" or "-inf". Doubles come
/// back bit for bit (all NaNs as one).
/// Errors: CheckpointError for a string that is no UTF-8, and for bytes.
[[nodiscard]] std::string values_text(const nlohmann::ordered_json& values);

/// Errors: CheckpointError with path.
[[nodiscard]] nlohmann::ordered_json parse_values(const std::string& text, const std::string& path);

}  // namespace argosy::checkpoint
