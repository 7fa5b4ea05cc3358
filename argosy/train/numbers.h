#pragma once

#include <string_view>

#include "argosy/optim/lr_scheduler.h"

#include <nlohmann/json_fwd.hpp>

namespace argosy::train::detail {

/// A number with all its bits; JSON has no NaN and no infinities, they become "nan", "inf", "-inf".
[[nodiscard]] nlohmann::ordered_json to_json(double value);
/// The same back. Errors: CheckpointError when the field is missing or no number.
[[nodiscard]] double number_in(const nlohmann::ordered_json& object, std::string_view field);

/// Where a schedule stands, and back.
[[nodiscard]] nlohmann::ordered_json to_json(const optim::LRSchedulerState& state);
[[nodiscard]] optim::LRSchedulerState schedule_state(const nlohmann::ordered_json& object);

}  // namespace argosy::train::detail
