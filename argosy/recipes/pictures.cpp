#include "argosy/recipes/assembly.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/engine/seed.h"
#include "argosy/loss/loss.h"
#include "argosy/metrics/metrics.h"
#include "argosy/vision/datasets/sets.h"

namespace argosy::recipes {
namespace {

constexpr int64_t kManyClasses = 20;  // from here on the five highest are counted too

/// Constants of RGB for gray and of gray for RGB. Gray is a weighted sum of the three, as codecs
/// make it.
std::vector<double> for_channels(const std::vector<double>& constants, int channels) {
  if (constants.size() == 3 && channels == 1) {
    return {0.299 * constants[0] + 0.587 * constants[1] + 0.114 * constants[2]};
  }
  return constants;
}

std::vector<double> constants_of(const Values& values,
                                 const char* name,
                                 const std::vector<double>& own,
                                 int channels) {
  if (values.is_auto(name)) {
    return for_channels(own, channels);
  }
  std::vector<double> given = values.numbers(name);
  ARGOSY_CHECK(given.size() == 1 || std::ssize(given) == channels,
               kData.where,
               "{}: expected 1 or {} numbers with \"/\" between them, got {}",
               name,
               channels,
               given.size());
  return given;
}

int side_of(const ModelEntry& model, const DataSet::Stored& stored, std::optional<int64_t> asked) {
  constexpr int64_t kMost = 4096;
  ARGOSY_CHECK(model.side == 0 || !asked.has_value() || *asked == model.side,
               kModels.where,
               "--image_size {}: {} takes pictures of {} x {}",
               asked.value_or(0),
               model.row.name,
               model.side,
               model.side);
  ARGOSY_CHECK(
      asked.value_or(1) <= kMost, kModels.where, "--image_size {}: at most {}", *asked, kMost);
  if (model.side != 0) {
    return static_cast<int>(model.side);
  }
  return static_cast<int>(asked.value_or(stored.side != 0 ? stored.side : model.usual_side));
}

PictureShape shape_of(const ModelEntry& model,
                      const DataSpec& spec,
                      const DataSet& data,
                      std::optional<int64_t> image_size) {
  const DataSet::Stored stored = data.stored();
  const bool points = data.task() == Task::kPoints;
  PictureShape shape{.stored = stored.side,
                     .mirrored_points = vision::mirrored_points(data.point_names())};
  shape.side = side_of(model, stored, image_size);
  shape.channels = model.channels != 0 ? static_cast<int>(model.channels) : stored.channels;
  shape.repeats = points && shape.channels == 3;
  const Values values(kData, spec.entry->row, spec.options.options);
  shape.mean = constants_of(values, "mean", data.like().set->mean, shape.channels);
  shape.std = constants_of(values, "std", data.like().set->std, shape.channels);
  return shape;
}

/// The model for data that is open.
void add_model(Assembly& assembly, const Wanted& wanted) {
  const Spec spec = parse_spec(kModels, wanted.model);
  assembly.model_entry = &find_entry(kModels, models(), spec.name);
  const ModelEntry& entry = *assembly.model_entry;
  const Values values(kModels, entry.row, spec.options);
  const bool points = assembly.task == Task::kPoints;
  ARGOSY_CHECK(points || !entry.points_only,
               kModels.where,
               "{} gives points, and {} has classes",
               spec.name,
               assembly.data_spec.entry->row.name);
  assembly.model_text = values.to_string();
  assembly.shape = shape_of(entry, assembly.data_spec, *assembly.data, wanted.image_size);
  assembly.size = {.outputs = points ? 2 * std::ssize(assembly.data->point_names())
                                     : std::ssize(assembly.data->classes()),
                   .channels = assembly.shape.channels};
  seed_everything(wanted.seed);
  assembly.model = entry.build(assembly.size, values);
}

}  // namespace

std::string Assembly::augment_of(const std::string& augment) const {
  constexpr int kSmall = 64;
  if (augment != "default") {
    return augment;
  }
  const std::string& own = data->like().set->augment;
  if (own != "auto") {
    return own;
  }
  return shape.stored != 0 && shape.stored <= kSmall ? "none" : "resized_crop,flip";
}

Examples Assembly::training(const std::string& augment) const {
  return data->examples(
      data->training_split(), training_chain(augment_of(augment), shape), shape.channels);
}

Examples Assembly::evaluation(const std::string& split) const {
  return data->examples(split, evaluation_chain(shape), shape.channels);
}

loss::Loss Assembly::loss(double label_smoothing) const {
  if (task == Task::kPoints) {
    ARGOSY_CHECK(label_smoothing == 0,
                 "recipes.train",
                 "--label_smoothing {}: points have no labels",
                 label_smoothing);
    return loss::MSE();
  }
  if (task == Task::kTags) {
    ARGOSY_CHECK(label_smoothing == 0,
                 "recipes.train",
                 "--label_smoothing {}: a picture has several classes",
                 label_smoothing);
    return loss::BCEWithLogits();
  }
  return loss::CrossEntropy({.label_smoothing = label_smoothing});
}

std::vector<metrics::AnyMetric> Assembly::metrics() const {
  if (task == Task::kPoints) {
    return {metrics::MeanAbsoluteError()};
  }
  if (task == Task::kTags) {  // its loss is what an evaluation compares
    return {};
  }
  if (size.outputs > kManyClasses) {
    return {metrics::Accuracy({.topk = {1, 5}})};
  }
  return {metrics::Accuracy()};
}

Assembly assemble(const Wanted& wanted) {
  ARGOSY_CHECK(!wanted.model.empty(),
               kModels.where,
               "--model is required. See: argosy train "
               "--list models");
  ARGOSY_CHECK(
      !wanted.data.empty(), kData.where, "--data is required. See: argosy train --list data");
  static_cast<void>(
      find_entry(kModels, models(), parse_spec(kModels, wanted.model).name));  // before slow files
  Assembly assembly;
  assembly.data_spec = parse_data(wanted.data);
  assembly.data = open_data(assembly.data_spec);
  assembly.task = assembly.data->task();
  add_model(assembly, wanted);
  return assembly;
}

}  // namespace argosy::recipes
