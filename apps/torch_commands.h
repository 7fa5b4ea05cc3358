#pragma once

#include "argosy/program/commands.h"

namespace argosy::apps {

/// Run `argosy train`, `evaluate` and `predict`. `args` follow the word.
int train(const program::Words& args);
int evaluate(const program::Words& args);
int predict(const program::Words& args);

/// Run `argosy checkpoint convert`, and `hash` for files that only libtorch's side reads.
int checkpoint_convert(const program::Words& args);
int checkpoint_hash(const program::Words& args);

}  // namespace argosy::apps
