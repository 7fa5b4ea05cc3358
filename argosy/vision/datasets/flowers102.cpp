#include "argosy/vision/datasets/flowers102.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/source.h"
#include "argosy/vision/datasets/split_of.h"

namespace argosy::vision {
namespace {

Split stored(Split split, FlowersSplits splits) {
  if (splits == FlowersSplits::kPublished || split == Split::kValid) {
    return split;
  }
  return split == Split::kTrain ? Split::kTest : Split::kTrain;
}

}  // namespace

Flowers102::Flowers102(const std::string& folder, Split split, Flowers102Options options)
    : LabelledPictures([&] {
        const std::shared_ptr<const datasets::Source> source = datasets::open("flowers102", folder);
        const datasets::About& about = source->about();
        if (about.missing > 0 && options.missing == MissingPictures::kError) {
          throw DataError(
              "vision.Flowers102",
              fmt::format(
                  "{} of the {} pictures that setid.mat names are not in the archive: it is "
                  "a part of the set, or a broken download. To bring all: argosy data fetch "
                  "flowers102 --replace. To go on with those that are there: --skip_missing "
                  "where the program has it, as examples/flowers; in code .missing = "
                  "MissingPictures::kSkip",
                  about.missing,
                  about.missing + source->size()),
              {folder});
        }
        return Parts{
            .where = "vision.Flowers102",
            .pictures = split_of(source, stored(split, options.splits), "vision.Flowers102"),
            .classes = about.classes,
            .options = {.transform = std::move(options.transform), .cache = options.cache}};
      }()) {}

}  // namespace argosy::vision
