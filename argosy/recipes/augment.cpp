#include "argosy/recipes/augment.h"

#include <algorithm>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/vision/transforms/transforms.h"

namespace argosy::recipes {
namespace {

using vision::AnyTransform;

/// Evaluation sees 224 of 256 pixels, as networks for ImageNet are measured.
int around(int side) {
  return side * 256 / 224;
}

/// Pictures of one size to the model's; others to somewhat more, proportions kept.
AnyTransform to_edge(const PictureShape& shape) {
  return shape.stored != 0 ? vision::Resize({.height = shape.side, .width = shape.side})
                           : vision::Resize(around(shape.side));
}

std::vector<AnyTransform> to_size(const PictureShape& shape) {
  if (shape.stored == shape.side) {
    return {};
  }
  if (shape.stored != 0) {
    return {to_edge(shape)};
  }
  return {to_edge(shape), vision::CenterCrop(shape.side)};
}

/// `before`, the geometry and what else goes on bytes, `after` what follows Normalize.
vision::Compose chain_of(const PictureShape& shape,
                         std::vector<AnyTransform> before,
                         const std::vector<AnyTransform>& after) {
  if (shape.repeats) {
    before.emplace_back(vision::Repeat(3));
  }
  before.emplace_back(vision::ToTensor());
  const bool as_it_is = std::ranges::all_of(shape.mean, [](double x) { return x == 0; }) &&
                        std::ranges::all_of(shape.std, [](double x) { return x == 1; });
  if (!as_it_is) {
    before.emplace_back(vision::Normalize(shape.mean, shape.std));
  }
  before.insert(before.end(), after.begin(), after.end());
  return vision::Compose(std::move(before));
}

using vision::AnyTransform;

const OptionRow kAlways{"p", "1", "share of the samples that it is applied to"};
const OptionRow kHalf{"p", "0.5", "probability"};

/// `step` to a share of the samples.
AnyTransform sometimes(AnyTransform step, const Values& values) {
  const double p = values.number("p");
  return p == 1 ? std::move(step) : AnyTransform(vision::RandomApply({std::move(step)}, p));
}

vision::Range range_of(const Values& values, std::string_view name) {
  const std::vector<double> both = values.numbers(name, 2);
  return {both[0], both[1]};
}

/// 0.2, or 0.5/1.5.
vision::Spread spread_of(const Values& values, std::string_view name) {
  const std::vector<double> numbers = values.numbers(name);
  return numbers.size() == 1 ? vision::Spread(numbers[0]) : [&] {
    const vision::Range range = range_of(values, name);
    return vision::Spread(range.low, range.high);
  }();
}

/// A part of the model's size, of a picture that has about that size.
AnyTransform random_crop(const PictureShape& shape, const Values& values) {
  const int usual = shape.stored != 0 ? shape.side / 8 : 0;
  const int border = values.is_auto("padding") ? usual : static_cast<int>(values.whole("padding"));
  const std::string& mode = values.word("mode", {"zeros", "reflect", "edge"});
  return vision::RandomCrop(shape.side,
                            {.padding = border,
                             .mode = mode == "zeros"     ? image::PadMode::kConstant
                                     : mode == "reflect" ? image::PadMode::kReflect
                                                         : image::PadMode::kEdge});
}

AugmentEntry crop() {
  return {.row = {"crop",
                  "a part of the model's size from anywhere, with a border first",
                  {{"padding", "auto", "pixels of border; auto: an eighth of small pictures"},
                   {"mode", "zeros", "of the border: zeros, reflect, edge"}}},
          .stage = Stage::kGeometry,
          .wants_size = true,
          .build = random_crop};
}

AugmentEntry resized_crop() {
  return {.row = {"resized_crop",
                  "a part of random area and shape, resized: ImageNet's",
                  {{"scale", "0.08/1", "of the picture's area"},
                   {"ratio", "0.75/1.3333333333333333", "width / height"}}},
          .stage = Stage::kGeometry,
          .build = [](const PictureShape& shape, const Values& values) -> AnyTransform {
            return vision::RandomResizedCrop(
                shape.side,
                {.scale = range_of(values, "scale"), .ratio = range_of(values, "ratio")});
          }};
}

AugmentEntry flip() {
  return {.row = {"flip", "left and right exchanged", {kHalf}},
          .build = [](const PictureShape& shape, const Values& values) -> AnyTransform {
            return vision::RandomHorizontalFlip(vision::FlipOptions{
                .p = values.number("p"), .keypoint_pairs = shape.mirrored_points});
          }};
}

AugmentEntry vflip() {
  return {.row = {"vflip", "top and bottom exchanged", {kHalf}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return vision::RandomVerticalFlip(values.number("p"));
          }};
}

AugmentEntry rotate() {
  return {.row = {"rotate", "turned", {{"degrees", "15", "at most, to both sides"}, kAlways}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return sometimes(
                vision::RandomRotation(values.number("degrees"),
                                       {.interpolation = image::Interpolation::kBilinear}),
                values);
          }};
}

AugmentEntry affine() {
  return {.row = {"affine",
                  "turned, shifted, scaled and sheared",
                  {{"degrees", "15", "at most, to both sides"},
                   {"translate", "0.1/0.1", "of width and height, at most"},
                   {"scale", "0.9/1.1", "factor"},
                   {"shear", "0/0", "degrees along the x axis"},
                   kAlways}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            const vision::Range shift = range_of(values, "translate");
            return sometimes(
                vision::RandomAffine(values.number("degrees"),
                                     {.translate = {shift.low, shift.high},
                                      .scale = range_of(values, "scale"),
                                      .shear_x = range_of(values, "shear"),
                                      .interpolation = image::Interpolation::kBilinear}),
                values);
          }};
}

AugmentEntry perspective() {
  return {.row = {"perspective",
                  "seen from another side",
                  {{"distortion", "0.5", "0 none, 1 corners to the middle"}, kHalf}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return vision::RandomPerspective(
                {.distortion_scale = values.number("distortion"), .p = values.number("p")});
          }};
}

AugmentEntry jitter() {
  return {.row = {"jitter",
                  "brightness, contrast, saturation and hue: 0.2, or a range 0.5/1.5",
                  {{"brightness", "0.2", "around 1"},
                   {"contrast", "0.2", "around 1"},
                   {"saturation", "0.2", "around 1"},
                   {"hue", "0.05", "around 0, at most 0.5"},
                   kAlways}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return sometimes(vision::ColorJitter({.brightness = spread_of(values, "brightness"),
                                                  .contrast = spread_of(values, "contrast"),
                                                  .saturation = spread_of(values, "saturation"),
                                                  .hue = spread_of(values, "hue")}),
                             values);
          }};
}

/// One of the four parts of jitter, alone.
template <typename T>
AugmentEntry tone(std::string name, std::string what, std::string value) {
  return {.row = {std::move(name),
                  std::move(what),
                  {{"value", std::move(value), "how far: a number, or a range low/high"}, kAlways}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return sometimes(T(spread_of(values, "value")), values);
          }};
}

/// By chance, with nothing else to choose.
template <typename T>
AugmentEntry chance(std::string name, std::string what, std::string p = "0.5") {
  return {.row = {std::move(name), std::move(what), {{"p", std::move(p), "probability"}}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return T(values.number("p"));
          }};
}

AugmentEntry posterize() {
  return {.row = {"posterize", "fewer shades", {{"bits", "4", "that stay of eight"}, kHalf}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return vision::RandomPosterize(static_cast<int>(values.whole("bits")),
                                           values.number("p"));
          }};
}

AugmentEntry solarize() {
  return {.row = {"solarize",
                  "the negative of what is bright",
                  {{"threshold", "128", "from which on, 0 to 255"}, kHalf}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return vision::RandomSolarize(values.number("threshold"), values.number("p"));
          }};
}

AugmentEntry sharpness() {
  return {
      .row = {"sharpness", "smoother (below 1) or sharper", {{"factor", "2", "0 to any"}, kHalf}},
      .build = [](const PictureShape&, const Values& values) -> AnyTransform {
        return vision::RandomAdjustSharpness(values.number("factor"), values.number("p"));
      }};
}

AugmentEntry blur() {
  return {.row = {"blur",
                  "blurred by a Gaussian",
                  {{"kernel", "3", "pixels, odd"}, {"sigma", "0.1/2", "pixels"}, kAlways}},
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return sometimes(vision::GaussianBlur(static_cast<int>(values.whole("kernel")),
                                                  range_of(values, "sigma")),
                             values);
          }};
}

AugmentEntry erase() {
  return {.row = {"erase",
                  "a box overwritten, behind Normalize",
                  {kHalf,
                   {"scale", "0.02/0.33", "of the picture's area"},
                   {"ratio", "0.3/3.3", "height / width"},
                   {"with", "mean", "mean, noise"}}},
          .stage = Stage::kTensor,
          .build = [](const PictureShape&, const Values& values) -> AnyTransform {
            return vision::RandomErasing({.p = values.number("p"),
                                          .scale = range_of(values, "scale"),
                                          .ratio = range_of(values, "ratio"),
                                          .with = values.word("with", {"mean", "noise"}) == "mean"
                                                      ? vision::EraseWith::kValue
                                                      : vision::EraseWith::kNoise});
          }};
}

}  // namespace

vision::Compose training_chain(const std::string& augment, const PictureShape& shape) {
  if (augment == "none") {
    return evaluation_chain(shape);
  }
  std::vector<AnyTransform> geometry;
  std::vector<AnyTransform> pictures;
  std::vector<AnyTransform> tensors;
  int parts = 0;
  for (const Spec& spec : parse_specs(kAugment, augment)) {
    ARGOSY_CHECK(spec.name != "none" && spec.name != "default",
                 kAugment.where,
                 "\"{}\": \"{}\" stands alone",
                 augment,
                 spec.name);
    const AugmentEntry& entry = find_entry(kAugment, augmentations(), spec.name);
    const Values values(kAugment, entry.row, spec.options);
    std::vector<AnyTransform>& stage = entry.stage == Stage::kGeometry  ? geometry
                                       : entry.stage == Stage::kPicture ? pictures
                                                                        : tensors;
    if (entry.wants_size && shape.stored != shape.side) {
      stage.push_back(to_edge(shape));
    }
    stage.push_back(entry.build(shape, values));
    parts += entry.stage == Stage::kGeometry ? 1 : 0;
  }
  ARGOSY_CHECK(parts <= 1,
               kAugment.where,
               "\"{}\": crop and resized_crop both choose the part of the picture that is seen. "
               "Take one",
               augment);
  if (geometry.empty()) {
    geometry = to_size(shape);
  }
  geometry.insert(geometry.end(), pictures.begin(), pictures.end());
  return chain_of(shape, std::move(geometry), tensors);
}

vision::Compose evaluation_chain(const PictureShape& shape) {
  return chain_of(shape, to_size(shape), {});
}

const std::vector<AugmentEntry>& augmentations() {
  static const std::vector<AugmentEntry> all{
      crop(),
      resized_crop(),
      flip(),
      vflip(),
      rotate(),
      affine(),
      perspective(),
      jitter(),
      tone<vision::BrightnessTransform>("brightness", "brighter or darker", "0.2"),
      tone<vision::ContrastTransform>("contrast", "more or less contrast", "0.2"),
      tone<vision::SaturationTransform>("saturation", "more or less color", "0.2"),
      tone<vision::HueTransform>("hue", "all colors turned", "0.05"),
      chance<vision::RandomGrayscale>("gray", "without colors", "0.1"),
      chance<vision::RandomInvert>("invert", "the negative"),
      chance<vision::RandomAutocontrast>("autocontrast", "each channel over the whole range"),
      chance<vision::RandomEqualize>("equalize", "all shades alike often"),
      posterize(),
      solarize(),
      sharpness(),
      blur(),
      erase()};
  return all;
}

}  // namespace argosy::recipes
