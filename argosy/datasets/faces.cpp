#include "argosy/datasets/faces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/source.h"

namespace argosy::datasets {
namespace {

/// Errors: DataError unless it is a face like those before it.
void check_face(const formats::PackedSample& sample,
                const Keypoints& faces,
                const DataPlace& place) {
  const int64_t side = faces.size() == 0 ? sample.height : faces.side;
  if (sample.kind != formats::Picture::kPixels || sample.channels != 1 || sample.height != side ||
      sample.width != side) {
    throw DataError(
        "datasets.keypoints", "expected gray squares of one size, stored as pixels", place);
  }
  if (sample.points.size() != 2 * faces.names.size()) {
    throw DataError(
        "datasets.keypoints",
        fmt::format(
            "expected {} points, got {} coordinates", faces.names.size(), sample.points.size()),
        place);
  }
}

/// Puts the last known coordinates into the gaps of `points`, and keeps them for the next.
void fill_forward(std::vector<float>& points, std::vector<float>& last, const DataPlace& place) {
  last.resize(points.size(), NAN);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i] = std::isfinite(points[i]) ? points[i] : last[i];
    if (!std::isfinite(points[i])) {
      throw DataError(
          "datasets.keypoints", "a coordinate is missing, and none above it is known", place);
    }
  }
  last = points;
}

Keypoints read_packed_faces(const std::string& path, Missing missing) {
  const auto source = open("records", path);
  Keypoints faces{.names = source->about().point_names};
  std::vector<uint8_t> scratch;
  std::vector<float> last;
  for (int64_t i = 0; i < source->size(); ++i) {
    formats::PackedSample sample = source->get(i, scratch);
    const DataPlace place{.path = path, .index = i};
    if (sample.points.empty()) {
      continue;
    }
    check_face(sample, faces, place);
    faces.side = sample.height;
    const bool known = std::ranges::all_of(sample.points, [](float x) { return std::isfinite(x); });
    if (!known && missing == Missing::kDrop) {
      continue;
    }
    if (missing == Missing::kForwardFill) {
      fill_forward(sample.points, last, place);
    }
    const auto* pixels = reinterpret_cast<const uint8_t*>(sample.picture.data());
    faces.pixels.insert(faces.pixels.end(), pixels, pixels + sample.picture.size());
    faces.points.insert(faces.points.end(), sample.points.begin(), sample.points.end());
    faces.rows.push_back(i);
  }
  if (faces.size() == 0) {
    throw DataError("datasets.keypoints", "no face with points in it", {path});
  }
  return faces;
}

}  // namespace

Keypoints read_faces_with_points(const std::string& path, Missing missing) {
  return recognise(path) == "records"
             ? read_packed_faces(path, missing)
             : read_keypoints(file_or_in_folder(path, keypoints().in_folder), {.missing = missing});
}

}  // namespace argosy::datasets
