#pragma once

/// Optimizers, learning-rate schedules, clipping, regularizers and averages of weights.
#include "argosy/optim/adagrad.h"        // IWYU pragma: export
#include "argosy/optim/adam.h"           // IWYU pragma: export
#include "argosy/optim/clip.h"           // IWYU pragma: export
#include "argosy/optim/decay.h"          // IWYU pragma: export
#include "argosy/optim/ema.h"            // IWYU pragma: export
#include "argosy/optim/grad_scaler.h"    // IWYU pragma: export
#include "argosy/optim/lamb.h"           // IWYU pragma: export
#include "argosy/optim/lars.h"           // IWYU pragma: export
#include "argosy/optim/lr_compose.h"     // IWYU pragma: export
#include "argosy/optim/lr_cycle.h"       // IWYU pragma: export
#include "argosy/optim/lr_decay.h"       // IWYU pragma: export
#include "argosy/optim/lr_plateau.h"     // IWYU pragma: export
#include "argosy/optim/lr_scheduler.h"   // IWYU pragma: export
#include "argosy/optim/rmsprop.h"        // IWYU pragma: export
#include "argosy/optim/schedule_unit.h"  // IWYU pragma: export
#include "argosy/optim/sgd.h"            // IWYU pragma: export
