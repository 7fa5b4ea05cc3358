#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sources.h"
#include "argosy/formats/idx.h"

namespace argosy::datasets {
namespace {

constexpr int64_t kClasses = 10;

std::vector<std::string> class_names(const std::string& set) {
  if (set == "fashion_mnist") {
    return {"T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot"};
  }
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

formats::IdxArray read(const std::string& path, size_t dims) {
  formats::IdxArray array = formats::read_idx(path);
  if (array.type != formats::IdxType::kU8 || array.dims.size() != dims) {
    throw DataError(
        "datasets.idx",
        fmt::format("expected bytes in {} dimension{}, got {} dimensions of type {:02x}",
                    dims,
                    dims == 1 ? "" : "s",
                    array.dims.size(),
                    static_cast<int>(array.type)),
        {path});
  }
  return array;
}

struct Files {
  std::string split;
  std::string images;
  std::string labels;
};

PixelBlock read_split(const Files& files, Shape& shape) {
  formats::IdxArray images = read(files.images, 3);
  const formats::IdxArray labels = read(files.labels, 1);
  if (images.dims[0] != labels.dims[0]) {
    throw DataError("datasets.idx",
                    fmt::format("has {} labels for {} images", labels.dims[0], images.dims[0]),
                    {files.labels});
  }
  const auto wrong =
      std::ranges::find_if(labels.bytes, [](uint8_t label) { return label >= kClasses; });
  if (wrong != labels.bytes.end()) {
    throw DataError("datasets.idx",
                    fmt::format("expected labels 0 to 9, got {}", *wrong),
                    {.path = files.labels, .index = wrong - labels.bytes.begin()});
  }
  const Shape own{.height = images.dims[1], .width = images.dims[2], .channels = 1};
  constexpr int64_t kMostSide = 65'535;
  if (own.height < 1 || own.height > kMostSide || own.width < 1 || own.width > kMostSide) {
    throw DataError("datasets.idx",
                    fmt::format("expected images of 1 to {} pixels a side, got {} x {}",
                                kMostSide,
                                own.height,
                                own.width),
                    {files.images});
  }
  if (shape.channels > 0 && (own.height != shape.height || own.width != shape.width)) {
    throw DataError("datasets.idx",
                    fmt::format("expected {} x {} pixels as in the other split, got {} x {}",
                                shape.height,
                                shape.width,
                                own.height,
                                own.width),
                    {files.images});
  }
  shape = own;
  return {.split = files.split,
          .pixels = std::move(images.bytes),
          .count = images.dims[0],
          .labels = {labels.bytes.begin(), labels.bytes.end()}};
}

}  // namespace

std::unique_ptr<SampleSource> open_idx(const std::string& set, const std::string& path) {
  const auto files = [&](const char* split,
                         std::initializer_list<const char*> images,
                         std::initializer_list<const char*> labels) {
    Files found{split, find_file(path, images), ""};
    if (!found.images.empty()) {
      found.labels = need_file(std::filesystem::path(found.images).parent_path().string(), labels);
    }
    return found;
  };
  Shape shape;
  std::vector<PixelBlock> blocks;
  for (const Files& split : {files("train",
                                   {"train-images-idx3-ubyte.gz", "train-images-idx3-ubyte"},
                                   {"train-labels-idx1-ubyte.gz", "train-labels-idx1-ubyte"}),
                             files("test",
                                   {"t10k-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte"},
                                   {"t10k-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte"})}) {
    if (!split.images.empty()) {
      blocks.push_back(read_split(split, shape));
    }
  }
  if (blocks.empty()) {
    (void)need_file(path, {"train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"});
    throw DataError(
        "datasets.idx", "is none of the IDX files. Give the folder that has them", {path});
  }
  return std::make_unique<PixelSource>(
      Description{.set = set, .path = path, .classes = class_names(set)}, shape, std::move(blocks));
}

}  // namespace argosy::datasets
