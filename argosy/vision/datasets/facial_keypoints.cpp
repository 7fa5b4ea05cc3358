#include "argosy/vision/datasets/facial_keypoints.h"

#include <algorithm>
#include <cstring>

#include <ATen/ops/empty.h>

#include "argosy/base/check.h"
#include "argosy/formats/keypoints.h"
#include "argosy/samples/files.h"

namespace argosy::vision {
namespace {

constexpr const char* kWhere = "vision.FacialKeypoints";

formats::Missing in_formats(Missing missing) {
  switch (missing) {
    case Missing::kDrop:
      return formats::Missing::kDrop;
    case Missing::kForwardFill:
      return formats::Missing::kForwardFill;
    case Missing::kKeep:
      return formats::Missing::kKeep;
  }
  return formats::Missing::kDrop;
}

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

struct FacialKeypoints::State {
  formats::Keypoints faces;
  Compose transform;
};

FacialKeypoints::FacialKeypoints(const std::string& path, FacialKeypointsOptions options)
    : state_(std::make_shared<const State>(
          State{.faces = formats::read_keypoints(
                    samples::file_or_in_folder(path, {"training.csv.gz", "training.csv"}),
                    {.missing = in_formats(options.missing)}),
                .transform = std::move(options.transform)})) {}

int64_t FacialKeypoints::size() const {
  return state_->faces.size();
}

KeypointImage FacialKeypoints::at(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               kWhere,
               "index {} is outside the data set of {} samples",
               index,
               size());
  const formats::Keypoints& faces = state_->faces;
  const auto side = static_cast<int>(faces.side);
  const auto points = static_cast<int64_t>(faces.names.size());
  KeypointImage face{.image = image::Image({side, side}, image::Order::kGray),
                     .points = at::empty({points, 2}, at::kFloat)};
  std::memcpy(face.image.data(),
              faces.pixels.data() + index * faces.side * faces.side,
              face.image.total_bytes());
  std::memcpy(face.points.data_ptr(),
              faces.points.data() + index * points * 2,
              static_cast<size_t>(face.points.nbytes()));
  return face;
}

KeypointTensor FacialKeypoints::get(int64_t index, data::Random& random) const {
  return state_->transform(at(index), random);
}

const std::vector<std::string>& FacialKeypoints::names() const {
  return state_->faces.names;
}

std::vector<std::pair<int64_t, int64_t>> FacialKeypoints::pairs() const {
  std::vector<std::pair<int64_t, int64_t>> found;
  for (size_t i = 0; i < names().size(); ++i) {
    const auto partner = std::ranges::find(names(), other_side(names()[i]));
    const auto j = static_cast<size_t>(partner - names().begin());
    if (partner != names().end() && i < j) {
      found.emplace_back(static_cast<int64_t>(i), static_cast<int64_t>(j));
    }
  }
  return found;
}

}  // namespace argosy::vision
