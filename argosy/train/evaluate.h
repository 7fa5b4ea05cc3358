#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "argosy/train/core.h"

// Internal to the room.
namespace argosy::train::detail {

/// Runs one evaluation. Collective.
Logs evaluate(Core& core, Model& model, Feed& feed, const EvaluateOptions& options);
/// The same within fit(). Returns nullopt if the evaluation was left because some rank was asked to
/// leave. on_eval_end() was then not called, and the metrics hold what they have counted so far.
std::optional<Logs> evaluate_unless(Core& core,
                                    Model& model,
                                    Feed& feed,
                                    const EvaluateOptions& options,
                                    const std::function<bool()>& asked_to_leave);
std::vector<at::Tensor> predict(Core& core,
                                Model& model,
                                Feed& feed,
                                const PredictOptions& options);

}  // namespace argosy::train::detail
