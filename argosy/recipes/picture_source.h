#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "argosy/datasets/source.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/examples.h"
#include "argosy/vision/datasets/labelled_pictures.h"

// Internal to the room.
namespace argosy::recipes {

struct PictureSourceOptions {
  std::vector<std::string> classes{};
  std::vector<std::string> point_names{};
  vision::PictureCache cache{};
  std::function<int64_t(int64_t index)> label{};  ///< empty: the source's
  bool labels_with_samples = false;               ///< nothing is read before: of records
  bool without_labels = false;                    ///< for prediction; targets are 0
};

/// All pictures of `source` through a chain, as gray (channels = 1) or RGB.
[[nodiscard]] std::shared_ptr<const ExampleSource> make_picture_source(
    const std::shared_ptr<const datasets::Source>& source,
    const vision::Compose& chain,
    int channels,
    const PictureSourceOptions& options);

/// By the first picture, the last and one between: decoded ones of one size have it for all.
[[nodiscard]] DataSet::Stored stored_pictures(const datasets::Source& source);

}  // namespace argosy::recipes
