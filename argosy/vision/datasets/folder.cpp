#include "argosy/vision/datasets/folder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/datasets/sets.h"
#include "argosy/vision/datasets/cached_source.h"

namespace argosy::vision {
namespace {

constexpr const char* kFolder = "vision.DatasetFolder";
constexpr const char* kImages = "vision.ImageFolder";

using Source = std::shared_ptr<const datasets::Source>;

/// Errors: DataError unless there are classes, and no splits.
void check_classes(const Source& source, const std::string& root) {
  const std::vector<std::string>& classes = source->about().classes;
  if (!source->about().splits.empty()) {
    throw DataError(
        kFolder,
        "expected a folder for each class, found one for each split. Name one of them: " + root +
            "/train",
        {root});
  }
  if (classes.empty()) {
    throw DataError(
        kFolder,
        "expected a folder for each class, found none. Of pictures without classes make "
        "an ImageFolder",
        {root});
  }
}

/// All pictures under `root`, kept as the options say.
Source opened(const std::string& root, const PictureOptions& options) {
  Source source = datasets::open_files({root});
  const Source kept = cached(kImages, source, options.cache, checked_order(kImages, options.order));
  return kept != nullptr ? kept : source;
}

}  // namespace

DatasetFolder::DatasetFolder(const std::string& root, PictureOptions options)
    : LabelledPictures([&] {
        const Source source = datasets::open("folder", {.path = root});
        check_classes(source, root);
        return Parts{.where = kFolder,
                     .pictures = {.source = source, .count = source->size()},
                     .classes = source->about().classes,
                     .options = std::move(options)};
      }()) {}

ImageFolder::ImageFolder(const std::string& root, PictureOptions options)
    : source_(opened(root, options)),
      batches_(std::make_shared<const PictureBatches>(
          PicturesOf{.source = source_, .count = source_->size()},
          std::move(options.transform),
          options.order)) {}

void ImageFolder::check_index(int64_t index) const {
  ARGOSY_CHECK(index >= 0 && index < size(),
               kImages,
               "index {} is outside the data set of {} samples",
               index,
               size());
}

std::tuple<at::Tensor> ImageFolder::get(int64_t index, data::Random& random) const {
  check_index(index);
  return {batches_->get(index, random)};
}

std::tuple<at::Tensor> ImageFolder::get_batch(std::span<const int64_t> indices,
                                              const data::BatchContext& context) const {
  std::ranges::for_each(indices, [&](int64_t index) { check_index(index); });
  return {batches_->get_batch(indices, context)};
}

std::string ImageFolder::path(int64_t index) const {
  check_index(index);
  datasets::Scratch scratch;
  return std::string(source_->get(index, scratch).name);
}

}  // namespace argosy::vision
