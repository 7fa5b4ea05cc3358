#include "argosy/vision/datasets/packed_pictures.h"

#include <memory>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/samples/sample_source.h"

namespace argosy::vision {

PackedPictures::PackedPictures(const std::string& path, PictureOptions options)
    : LabelledPictures([&] {
        const std::shared_ptr<const samples::SampleSource> source =
            samples::open_samples("records", path);
        Parts parts{.where = "vision.PackedPictures",
                    .pictures = {.source = source, .count = source->size()},
                    .classes = source->description().classes,
                    .options = std::move(options)};
        if (parts.classes.empty()) {
          throw DataError(parts.where, "its samples have no labels", {path});
        }
        return parts;
      }()) {}

}  // namespace argosy::vision
