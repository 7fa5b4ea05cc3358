#include <algorithm>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/keypoints.h"
#include "argosy/datasets/sets.h"
#include "argosy/fleet/fleet.h"
#include "argosy/recipes/clicks.h"
#include "argosy/recipes/parts.h"
#include "argosy/recipes/pictures.h"
#include "argosy/recipes/prediction.h"
#include "argosy/recipes/restore.h"
#include "argosy/recipes/run.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

const std::vector<std::string> kTestFaces{"test.csv.gz", "test.csv"};

/// What is looked at instead of the run's data set; nullptr: that.
std::shared_ptr<const datasets::Source> source_of(const PredictSettings& settings,
                                                  const std::vector<std::string>& pictures) {
  if (settings.submission.empty()) {
    return pictures.empty() ? nullptr : datasets::open_files(pictures);
  }
  ARGOSY_CHECK(settings.out.ends_with(".csv") && pictures.empty(),
               "recipes.predict",
               "--submission: expected --out FILE.csv and no pictures");
  (void)datasets::need_file(settings.submission, kTestFaces);
  return datasets::open("keypoints", {.path = settings.submission});
}

/// The contest's file: the coordinates that IdLookupTable.csv asks for.
void write_contest(const PredictSettings& settings,
                   const std::vector<Prediction>& predictions,
                   const std::vector<std::string>& names) {
  const auto queries =
      datasets::read_id_lookup(datasets::need_file(settings.submission, {"IdLookupTable.csv"}));
  const datasets::Faces faces =
      datasets::read_faces(datasets::need_file(settings.submission, kTestFaces));
  std::vector<float> points;
  for (const Prediction& each : predictions) {
    points.insert(points.end(), each.points.begin(), each.points.end());
  }
  datasets::write_submission(
      settings.out, queries, {.image_ids = faces.image_ids, .names = names, .points = points});
}

}  // namespace

nlohmann::ordered_json predict(const PredictSettings& settings,
                               const std::vector<std::string>& pictures) {
  if (!settings.sheet.empty()) {
    const std::string wrong = runs::page_name(settings.sheet);
    ARGOSY_CHECK(wrong.empty(), "recipes.predict", "--sheet {}", wrong);
  }
  if (is_of_clicks(settings)) {
    return predict_clicks(settings, pictures);
  }
  join(settings.device);
  const Restored restored = restore(settings, source_of(settings, pictures));
  const PictureAssembly& assembly = pictures_of(*restored.assembly, "recipes.predict");
  const std::vector<std::string>& points = assembly.data->point_names();
  ARGOSY_CHECK(settings.submission.empty() || !points.empty(),
               "recipes.predict",
               "--submission is for points, and {} gives classes",
               restored.weights);
  train::Model model = model_on(settings.device, assembly);
  model.prepare(assembly.loss(0), assembly.metrics(), amp_of(restored.amp));
  const Examples examples = assembly.evaluation(restored.split);
  const std::vector<at::Tensor> outputs =
      model.predict(examples,
                    {.batch_size = settings.batch_size.value_or(kEvaluationBatch),
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
  if (settings.submission.empty()) {
    write_predictions(settings.out, predictions, *assembly.data);
  } else {
    write_contest(settings, predictions, points);
  }
  if (!settings.sheet.empty()) {
    runs::write_picture_page(settings.sheet,
                             sheet_of(predictions, examples, *assembly.data, settings.sheet_size));
    result["sheet"] = settings.sheet;
  }
  result["out"] = settings.out;
  if (predictions.front().label >= 0) {
    result["right"] = std::ranges::count_if(predictions, &Prediction::right);
  }
  return result;
}

}  // namespace argosy::recipes
