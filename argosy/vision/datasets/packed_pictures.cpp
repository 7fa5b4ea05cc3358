#include "argosy/vision/datasets/packed_pictures.h"

#include <memory>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/vision/datasets/split_of.h"

namespace argosy::vision {
namespace {

PicturesOf all_of(const std::string& path) {
  const std::shared_ptr<const datasets::Source> source = datasets::open("records", {.path = path});
  return {.source = source, .count = source->size()};
}

}  // namespace

PackedPictures::PackedPictures(const std::string& path, PictureOptions options)
    : PackedPictures(all_of(path), std::move(options)) {}

PackedPictures::PackedPictures(const std::string& path, Split split, PictureOptions options)
    : PackedPictures(
          split_of(datasets::open("records", {.path = path}), split, "vision.PackedPictures"),
          std::move(options)) {}

PackedPictures::PackedPictures(PicturesOf pictures, PictureOptions options)
    : LabelledPictures([&] {
        const datasets::About& about = pictures.source->about();
        if (about.classes.empty()) {
          throw DataError("vision.PackedPictures",
                          "it names no classes: its samples have no labels, or it was written "
                          "without PackedSet::classes",
                          {about.path});
        }
        return Parts{.where = "vision.PackedPictures",
                     .pictures = pictures,
                     .classes = about.classes,
                     .options = std::move(options),
                     .read_labels = ReadLabels::kWithSamples};
      }()) {}

}  // namespace argosy::vision
