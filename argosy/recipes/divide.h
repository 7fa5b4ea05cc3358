#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "argosy/recipes/data.h"

// Internal to the room: which samples are for training and which for evaluation.
namespace argosy::recipes::detail {

/// Makes an evaluation split if `share` asks for one ("auto": if there is none), then limits all
/// splits.
[[nodiscard]] std::vector<Part> divided(std::vector<Part> parts, const Values& values);
/// Returns the first of these names that a split has, or "" if there is none.
[[nodiscard]] std::string first_of(const std::vector<std::string>& splits,
                                   std::initializer_list<const char*> names);

}  // namespace argosy::recipes::detail
