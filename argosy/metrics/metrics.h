#pragma once

/// Everything of the room: measures that are exact over ranks.
#include "argosy/metrics/accuracy.h"
#include "argosy/metrics/evaluate.h"
#include "argosy/metrics/mean_loss.h"
