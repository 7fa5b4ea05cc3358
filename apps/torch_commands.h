#pragma once

#include "argosy/program/commands.h"

namespace argosy::apps {

/// Run `argosy train`, `evaluate`, `predict` and `generate`. `args` follow the word.
int train(const program::Words& args);
int evaluate(const program::Words& args);
int predict(const program::Words& args);
int generate(const program::Words& args);

/// Runs `argosy estimate`.
int estimate(const program::Words& args);

/// Run `argosy checkpoint convert`, and `hash` for files that only libtorch's side reads.
int checkpoint_convert(const program::Words& args);
int checkpoint_hash(const program::Words& args);

/// As a rank of `argosy launch`: trains a small network for a moment; rank 0 says what came of it.
int doctor_training(const program::Words& args);
/// Computes and copies on each device. Says in lines of JSON what `argosy doctor` wants to know,
/// and before each step which one it is, for the case that it hangs.
int doctor_devices(const program::Words& args);

}  // namespace argosy::apps
