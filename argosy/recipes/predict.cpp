#include <algorithm>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/fleet/fleet.h"
#include "argosy/image/codec.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/prediction.h"
#include "argosy/recipes/run.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {

nlohmann::ordered_json predict(const PredictSettings& settings,
                               const std::vector<std::string>& pictures) {
  ARGOSY_CHECK(settings.sheet.empty() || settings.sheet.ends_with(".png"),
               "recipes.predict",
               "--sheet {}: expected a name that ends with .png",
               settings.sheet);
  join();
  const Restored restored = restore(settings, pictures);
  const Assembly& assembly = restored.assembly;
  train::Model model = assembly.model.model();
  model.prepare(assembly.loss(0), assembly.metrics(), amp_of(restored.amp));
  const Examples examples = assembly.evaluation(restored.split);
  const std::vector<at::Tensor> outputs =
      model.predict(examples,
                    {.batch_size = settings.batch_size,
                     .verbose = static_cast<int>(settings.verbose),
                     .num_workers = static_cast<int>(settings.num_workers)});
  nlohmann::ordered_json result{{"command", "predict"},
                                {"weights", restored.weights},
                                {"samples", examples.size()},
                                {"processes", fleet::worker_num()}};
  if (!fleet::is_first_worker()) {
    return result;
  }
  const std::vector<Prediction> predictions =
      predictions_of(assembly, examples, outputs.front(), settings.topk);
  write_predictions(settings.out, predictions, *assembly.data);
  if (!settings.sheet.empty()) {
    image::write_file(
        settings.sheet,
        image::encode_png(sheet_of(predictions, examples, *assembly.data, settings.sheet_size)));
    result["sheet"] = settings.sheet;
  }
  result["out"] = settings.out;
  if (predictions.front().label >= 0) {
    result["right"] = std::ranges::count_if(predictions, &Prediction::right);
  }
  return result;
}

}  // namespace argosy::recipes
