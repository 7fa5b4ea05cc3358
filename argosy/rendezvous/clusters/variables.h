#pragma once

#include <initializer_list>
#include <optional>
#include <string>

#include "argosy/rendezvous/environment.h"

// Internal: reads the variables of clusters.
namespace argosy::rendezvous::clusters {

/// Returns a whole number that is at least `low`. nullopt: the variable is unset. Errors:
/// ConfigError naming the variable.
[[nodiscard]] std::optional<int> number(const Lookup& lookup, const char* name, int low = 0);
/// Returns the same of a variable that must be set. Errors: ConfigError naming the variable.
[[nodiscard]] int required(const Lookup& lookup, const char* name, int low = 0);
/// Returns the first variable that is set. "": none is.
[[nodiscard]] std::string text(const Lookup& lookup, std::initializer_list<const char*> names);

}  // namespace argosy::rendezvous::clusters
