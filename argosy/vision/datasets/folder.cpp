#include "argosy/vision/datasets/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/datasets/source.h"
#include "argosy/vision/datasets/cached_source.h"

namespace argosy::vision {
namespace {

constexpr const char* kFolder = "vision.DatasetFolder";
constexpr const char* kImages = "vision.ImageFolder";

using Source = std::shared_ptr<const datasets::Source>;

/// Errors: DataError unless there are classes and each has a picture.
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
  std::vector<int64_t> pictures(classes.size(), 0);
  for (int64_t i = 0; i < source->size(); ++i) {
    ++pictures[static_cast<size_t>(source->label(i))];
  }
  std::vector<std::string> empty;
  for (size_t c = 0; c < classes.size(); ++c) {
    if (pictures[c] == 0) {
      empty.push_back(classes[c]);
    }
  }
  if (!empty.empty()) {
    throw DataError(kFolder,
                    fmt::format("no picture in {} of {} class folders: {}. Remove them, or put "
                                "pictures there",
                                empty.size(),
                                classes.size(),
                                fmt::join(empty, ", ")),
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
        const Source source = datasets::open("folder", root);
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
  std::vector<uint8_t> scratch;
  return std::string(source_->get(index, scratch).name);
}

}  // namespace argosy::vision
