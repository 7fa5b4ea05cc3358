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

/// What the pictures of a data set become before a model sees them.
struct PictureShape {
  int side = 224;              ///< pixels of both edges, as the model takes them
  int stored = 0;              ///< of the stored pictures; 0: they differ
  int channels = 3;            ///< 1 or 3
  bool repeats = false;        ///< the data set's own order is gray and the chain makes three of it
  std::vector<double> mean{};  ///< as Normalize takes them
  std::vector<double> std{};
  /// Points that change places in a mirror.
  std::vector<std::pair<int64_t, int64_t>> mirrored_points{};
};

/// Where in the chain a transform stands.
enum class Stage : uint8_t {
  kGeometry,  ///< makes pictures of the model's size of any others
  kPicture,   ///< of the picture's size and of bytes
  kTensor     ///< behind Normalize
};

struct AugmentEntry {
  Row row{};
  Stage stage = Stage::kPicture;
  bool wants_size = false;  ///< of kGeometry: pictures are brought to about the model's size before
  std::function<vision::Step(const PictureShape& shape, const Values& values)> build{};
};

/// All transforms, by name. Those without a probability of their own have p = 1: with less they are
/// applied to that share of the samples.
[[nodiscard]] const std::vector<AugmentEntry>& augmentations();

/// The chain of training: size, what `augment` lists, tensor, normalized. "none": nothing drawn.
/// Errors: UsageError of the names and options.
[[nodiscard]] vision::Compose training_chain(const std::string& augment, const PictureShape& shape);
/// The chain of evaluation: size, tensor, normalized. Pictures of differing sizes: the middle.
[[nodiscard]] vision::Compose evaluation_chain(const PictureShape& shape);

}  // namespace argosy::recipes
