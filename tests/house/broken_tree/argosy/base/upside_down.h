#pragma once

// Breaks the layering on purpose: house.layers_catches_a_breach expects the check to say so.
#include "argosy/comm/group.h"

// A name that another room has too: house.class_names_catches_a_breach expects the check to say so.
class [[nodiscard]] Twice final {};
class ForwardOnly;
