#include <algorithm>
#include <utility>

#include "argosy/fleet/fleet.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/restore.h"
#include "argosy/recipes/run.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {

nlohmann::ordered_json evaluate(const EvaluateSettings& settings) {
  if (is_of_clicks(settings)) {
    return evaluate_clicks(settings);
  }
  const int64_t batch_size = settings.batch_size.value_or(kEvaluationBatch);
  join(settings.device);
  const Restored restored = restore(settings);
  const Assembly& assembly = *restored.assembly;
  train::Model model = model_on(settings.device, assembly);
  model.prepare(assembly.loss(restored.label_smoothing), assembly.metrics(), amp_of(restored.amp));
  const train::Logs logs = assembly.evaluate(model,
                                             restored.split,
                                             {.batch_size = batch_size,
                                              .verbose = static_cast<int>(settings.verbose),
                                              .num_workers = static_cast<int>(settings.num_workers),
                                              .num_iters = settings.num_iters});
  int64_t samples = assembly.size(restored.split);
  if (settings.num_iters.has_value()) {  // batches of each process
    samples = std::min(samples, *settings.num_iters * batch_size * fleet::worker_num());
  }
  auto result = nlohmann::ordered_json::object();
  for (const auto& [name, value] : logs) {
    result[name] = value;
  }
  return {{"command", "evaluate"},
          {"weights", restored.weights},
          {"model", assembly.model_text},
          {"data", assembly.data_spec.to_string()},
          {"split", restored.split},
          {"samples", samples},
          {"processes", fleet::worker_num()},
          {"amp", restored.amp},
          {"result", std::move(result)}};
}

}  // namespace argosy::recipes
