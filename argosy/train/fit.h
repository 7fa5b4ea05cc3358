#pragma once

#include "argosy/train/checkpoint_folder.h"
#include "argosy/train/core.h"

// Internal to the room.
namespace argosy::train::detail {

/// Runs one call of fit().
History fit(
    Core& core, Model& model, Feed& train, Feed* eval, const FitOptions& options, FitStart& start);

}  // namespace argosy::train::detail
