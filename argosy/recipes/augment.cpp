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

}  // namespace argosy::recipes
