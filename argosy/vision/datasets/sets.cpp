#include "argosy/vision/datasets/sets.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>

#include "argosy/base/error.h"

namespace argosy::vision {
namespace {

/// "right_eye_center" of "left_eye_center", and the other way round; empty of "nose_tip".
std::string other_side(const std::string& name) {
  for (const auto& [side, other] : {std::pair("left", "right"), std::pair("right", "left")}) {
    if (const size_t at = name.find(side); at != std::string::npos) {
      return std::string(name).replace(at, std::strlen(side), other);
    }
  }
  return {};
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> mirrored_points(const std::vector<std::string>& names) {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (auto name = names.begin(); name != names.end(); ++name) {
    const auto partner = std::ranges::find(names, other_side(*name));
    if (partner != names.end() && name < partner) {
      found.emplace_back(name - names.begin(), partner - names.begin());
    }
  }
  return found;
}

std::vector<std::pair<int64_t, int64_t>> FacialKeypoints::pairs() const {
  return mirrored_points(names());
}

KeypointImage FacialKeypoints::at(int64_t index) const {
  StoredExample face = stored(index);
  KeypointImage copy{.image = std::move(face.picture),
                     .points = at::empty({std::ssize(face.points) / 2, 2}, at::kFloat)};
  std::ranges::copy(face.points, copy.points.data_ptr<float>());
  return copy;
}

PictureDataset detail::with_targets(PictureDataset set) {
  const datasets::About& about = set.source().about();
  if (about.classes.empty() && about.point_names.empty()) {
    throw DataError("vision.pictures",
                    "it names no classes: its samples have no labels. Of pictures without classes "
                    "make an ImageFolder",
                    {about.path});
  }
  return set;
}

DatasetFolder::DatasetFolder(const std::string& root, PictureOptions options)
    : PictureDataset(detail::with_targets(
          PictureDataset(datasets::folder(), root, std::string_view(), std::move(options)))) {
  if (!source().about().splits.empty()) {
    throw DataError(
        "vision.DatasetFolder",
        "expected a folder for each class, found one for each split. Name one of them: " + root +
            "/train",
        {root});
  }
}

}  // namespace argosy::vision
