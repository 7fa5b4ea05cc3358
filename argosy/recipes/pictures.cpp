#include "argosy/recipes/pictures.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/engine/seed.h"
#include "argosy/loss/loss.h"
#include "argosy/metrics/metrics.h"
#include "argosy/recipes/description.h"
#include "argosy/vision/datasets/sets.h"

#include <nlohmann/json.hpp>

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
void add_model(PictureAssembly& assembly, const Wanted& wanted) {
  const Spec spec = parse_spec(kModels, wanted.model);
  const ModelEntry& entry = find_entry(kModels, models(), spec.name);
  const Values values(kModels, entry.row, spec.options);
  const bool points = assembly.task == Task::kPoints;
  ARGOSY_CHECK(points || !entry.points_only,
               kModels.where,
               "{} gives points, and {} has classes",
               spec.name,
               assembly.data_spec.entry->row.name);
  assembly.model_text = values.to_string();
  assembly.shape = shape_of(entry, assembly.data_spec, *assembly.data, wanted.image_size);
  assembly.sizes = {.outputs = points ? std::ssize(assembly.data->point_names()) * 2
                                      : std::ssize(assembly.data->classes()),
                    .channels = assembly.shape.channels};
  seed_everything(wanted.seed);
  assembly.model = entry.build(assembly.sizes, values);
}

}  // namespace

std::string PictureAssembly::augment_of(const std::string& augment) const {
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

Examples PictureAssembly::training(const std::string& augment) const {
  return data->examples(
      data->training_split(), training_chain(augment_of(augment), shape), shape.channels);
}

Examples PictureAssembly::evaluation(const std::string& split) const {
  return data->examples(split, evaluation_chain(shape), shape.channels);
}

loss::Loss PictureAssembly::loss(double label_smoothing) const {
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

std::vector<metrics::AnyMetric> PictureAssembly::metrics() const {
  if (task == Task::kPoints) {
    return {metrics::MeanAbsoluteError()};
  }
  if (task == Task::kTags) {  // its loss is what an evaluation compares
    return {};
  }
  if (sizes.outputs > kManyClasses) {
    return {metrics::Accuracy({.topk = {1, 5}})};
  }
  return {metrics::Accuracy()};
}

train::History PictureAssembly::fit(train::Model& model,
                                    const TrainSettings& resolved,
                                    const train::FitOptions& options) const {
  const Examples examples = training(resolved.augment);
  const std::string split = evaluation_split();
  return split.empty() ? model.fit(examples, options)
                       : model.fit(examples, evaluation(split), options);
}

train::Logs PictureAssembly::evaluate(train::Model& model,
                                      const std::string& split,
                                      const train::EvaluateOptions& options) const {
  return model.evaluate(evaluation(split), options);
}

void PictureAssembly::resolve(TrainSettings& settings) const {
  const TrainSettings usual;
  for (const auto& [option, given] :
       {std::pair("--sequence_length", settings.sequence_length.has_value()),
        std::pair("--tokenizer", settings.tokenizer != usual.tokenizer),
        std::pair("--recompute", settings.recompute),
        std::pair("--sample", !settings.sample.empty())}) {
    ARGOSY_CHECK(!given,
                 "recipes.train",
                 "{} is about language models, and {} learns from pictures",
                 option,
                 model_text.substr(0, model_text.find(':')));
  }
  settings.image_size = shape.side;
  settings.augment = augment_of(settings.augment);
}

void PictureAssembly::check(const TrainSettings& resolved) const {
  static_cast<void>(training(resolved.augment));
  static_cast<void>(loss(resolved.label_smoothing));
}

void PictureAssembly::describe(StoredRecipe& recipe) const {
  recipe.shape = shape;
  recipe.sizes = sizes;
  recipe.task = task;
  recipe.classes = data->classes();
  recipe.point_names = data->point_names();
}

nlohmann::ordered_json PictureAssembly::about_data(const TrainSettings& resolved) const {
  nlohmann::ordered_json json;
  if (task == Task::kPoints) {
    json["points"] = data->point_names().size();
  } else {
    json["classes"] = data->classes().size();
  }
  json["training_chain"] = training_chain(augment_of(resolved.augment), shape).to_string();
  json["evaluation_chain"] = evaluation_chain(shape).to_string();
  return json;
}

nlohmann::ordered_json PictureAssembly::about_model() const {
  const engine::Summary summary = model.summary({1, shape.channels, shape.side, shape.side});
  return {{"input", {shape.channels, shape.side, shape.side}},
          {"outputs", sizes.outputs},
          {"parameters", summary.parameters},
          {"parameter_bytes", summary.parameter_bytes},
          {"multiply_adds", summary.multiply_adds}};
}

std::unique_ptr<PictureAssembly> assemble_pictures(const Wanted& wanted) {
  auto assembly = std::make_unique<PictureAssembly>();
  assembly->data_spec = parse_data(wanted.data);
  assembly->data = open_data(assembly->data_spec);
  assembly->task = assembly->data->task();
  add_model(*assembly, wanted);
  return assembly;
}

std::unique_ptr<PictureAssembly> assemble_files(const StoredRecipe& about,
                                                std::shared_ptr<const datasets::Source> pictures) {
  auto assembly = std::make_unique<PictureAssembly>();
  assembly->data_spec = parse_data(about.settings.data);
  assembly->task = about.task;
  assembly->data = open_pictures(std::move(pictures), about.classes, about.point_names);
  const Spec spec = parse_spec(kModels, about.settings.model);
  const ModelEntry& entry = find_entry(kModels, models(), spec.name);
  const Values values(kModels, entry.row, spec.options);
  assembly->model_text = values.to_string();
  assembly->shape = about.shape;
  assembly->shape.stored = assembly->data->stored().side;
  assembly->shape.repeats = false;  // decoded as RGB at once
  assembly->sizes = about.sizes;
  assembly->model = entry.build(assembly->sizes, values);
  return assembly;
}

const PictureAssembly& pictures_of(const Assembly& assembly, const char* where) {
  const auto* pictures = dynamic_cast<const PictureAssembly*>(&assembly);
  ARGOSY_CHECK(pictures != nullptr,
               where,
               "{} is a language model. What it makes of a text: argosy generate --checkpoint RUN "
               "--prompt TEXT",
               assembly.model_text);
  return *pictures;
}

}  // namespace argosy::recipes
