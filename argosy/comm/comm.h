#pragma once

/// Everything in this room except the JSON overloads (json.h): groups, collectives on tensors,
/// initialization, hooks.
#include "argosy/comm/collectives.h"
#include "argosy/comm/flight_recorder.h"
#include "argosy/comm/group.h"
#include "argosy/comm/hooks.h"
#include "argosy/comm/init.h"
#include "argosy/comm/single_tensor.h"
#include "argosy/comm/work.h"
