#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/recipes/row.h"
#include "argosy/recipes/spec.h"
#include "argosy/vision/transforms/compose.h"

namespace argosy::recipes {

/// The shape that pictures of a data set get before a model sees them.
struct PictureShape {
  int side = 224;              ///< pixels of both edges, as the model takes them
  int stored = 0;              ///< side of the stored pictures; 0: they differ
  int channels = 3;            ///< 1 or 3
  bool repeats = false;        ///< the data set is gray, and the chain makes three channels of it
  std::vector<double> mean{};  ///< as Normalize takes them
  std::vector<double> std{};
  /// Pairs of points that change places in a mirror.
  std::vector<std::pair<int64_t, int64_t>> mirrored_points{};
};

/// The place of a transform in the chain.
enum class Stage : uint8_t {
  kGeometry,  ///< brings pictures of any size to the model's size
  kPicture,   ///< works on bytes and keeps the size
  kTensor     ///< works after Normalize
};

struct AugmentEntry {
  TableRow row{};
  Stage stage = Stage::kPicture;
  bool wants_size = false;  ///< for kGeometry: pictures are first brought to about the model's size
  std::function<vision::AnyTransform(const PictureShape& shape, const Values& values)> build{};
};

/// Returns all transforms by name. A transform without a probability of its own gets the option p =
/// 1; with a smaller p it is applied to that share of the samples.
[[nodiscard]] const std::vector<AugmentEntry>& augmentations();

/// Returns the chain of training: size, the transforms in `augment`, tensor, Normalize. "none": no
/// random transform.
/// Errors: UsageError for names and options.
[[nodiscard]] vision::Compose training_chain(const std::string& augment, const PictureShape& shape);
/// Returns the chain of evaluation: size, tensor, Normalize. If the sizes of pictures differ, it
/// takes their middle.
[[nodiscard]] vision::Compose evaluation_chain(const PictureShape& shape);

}  // namespace argosy::recipes
