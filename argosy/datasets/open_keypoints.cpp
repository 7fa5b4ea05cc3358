#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/keypoints.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sources.h"

namespace argosy::datasets {

std::unique_ptr<SampleSource> open_keypoints(const std::string& path) {
  const std::string file = file_or_in_folder(path, {"training.csv.gz", "training.csv"});
  Keypoints faces = read_keypoints(file, {.missing = Missing::kKeep});
  const int64_t side = faces.side;
  std::vector<PixelBlock> blocks;
  blocks.push_back({.split = "train",
                    .pixels = std::move(faces.pixels),
                    .count = faces.size(),
                    .points = std::move(faces.points)});
  if (const std::string test = find_file(file, {"test.csv.gz", "test.csv"});
      !test.empty() && path != file) {  // beside a file that was named, nothing else is meant
    Faces unlabelled = read_faces(test);
    if (unlabelled.side != side) {
      throw DataError(
          "datasets.keypoints", "its images are of another size than those of " + file, {test});
    }
    blocks.push_back({.split = "test",
                      .pixels = std::move(unlabelled.pixels),
                      .count = static_cast<int64_t>(unlabelled.image_ids.size())});
  }
  return std::make_unique<PixelSource>(
      Description{.set = "keypoints", .path = path, .point_names = std::move(faces.names)},
      Shape{.height = side, .width = side, .channels = 1},
      std::move(blocks));
}

}  // namespace argosy::datasets
