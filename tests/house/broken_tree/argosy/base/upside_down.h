#pragma once

// Breaks the layering on purpose: house.layers_catches_a_breach expects the check to say so.
#include "argosy/comm/group.h"
