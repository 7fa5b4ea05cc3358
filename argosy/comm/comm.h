#pragma once

/// Everything of the room: groups, collectives on tensors, initialisation.
#include "argosy/comm/collectives.h"
#include "argosy/comm/group.h"
#include "argosy/comm/init.h"
#include "argosy/comm/work.h"
