#pragma once

#include <string>

#include "argosy/launch/rank_end.h"

namespace argosy::launch {

/// Returns what an exit code usually means: " (not executable)". "": nothing in particular.
[[nodiscard]] std::string describe_code(int code);

/// Returns a sentence for people: what usually helps after such an end. It depends on how the rank
/// ended and on what it said last. "": no advice is known.
[[nodiscard]] std::string advice_for(const RankEnd& end);

}  // namespace argosy::launch
