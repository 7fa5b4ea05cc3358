#include "argosy/vision/datasets/flowers102.h"

#include <memory>
#include <utility>

#include "argosy/datasets/sets.h"
#include "argosy/vision/datasets/split_of.h"

namespace argosy::vision {
Flowers102::Flowers102(const std::string& folder, Split split, Flowers102Options options)
    : LabelledPictures([&] {
        const std::shared_ptr<const datasets::Source> source =
            datasets::open(datasets::flowers102(),
                           {.path = folder, .absent = options.absent, .splits = options.splits});
        return Parts{
            .where = "vision.Flowers102",
            .pictures = split_of(source, split, "vision.Flowers102"),
            .classes = source->about().classes,
            .options = {.transform = std::move(options.transform), .cache = options.cache}};
      }()) {}

}  // namespace argosy::vision
