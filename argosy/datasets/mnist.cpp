#include "argosy/datasets/mnist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/idx.h"

namespace argosy::datasets {
namespace {

constexpr int64_t kDigitClasses = 10;
// As torchvision spells them.
const std::vector<std::string> kDigits{"0 - zero",
                                       "1 - one",
                                       "2 - two",
                                       "3 - three",
                                       "4 - four",
                                       "5 - five",
                                       "6 - six",
                                       "7 - seven",
                                       "8 - eight",
                                       "9 - nine"};
const std::vector<std::string> kClothes{"T-shirt/top",
                                        "Trouser",
                                        "Pullover",
                                        "Dress",
                                        "Coat",
                                        "Sandal",
                                        "Shirt",
                                        "Sneaker",
                                        "Bag",
                                        "Ankle boot"};
const std::vector<std::string> kImageFiles{"train-images-idx3-ubyte.gz",
                                           "train-images-idx3-ubyte",
                                           "t10k-images-idx3-ubyte.gz",
                                           "t10k-images-idx3-ubyte"};

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

PixelBlock read_split(const Files& files, std::vector<int64_t>& shape) {
  formats::IdxArray images = read(files.images, 3);
  const formats::IdxArray labels = read(files.labels, 1);
  if (images.dims[0] != labels.dims[0]) {
    throw DataError("datasets.idx",
                    fmt::format("has {} labels for {} images", labels.dims[0], images.dims[0]),
                    {files.labels});
  }
  const auto wrong =
      std::ranges::find_if(labels.bytes, [](uint8_t label) { return label >= kDigitClasses; });
  if (wrong != labels.bytes.end()) {
    throw DataError("datasets.idx",
                    fmt::format("expected labels 0 to 9, got {}", *wrong),
                    {.path = files.labels, .index = wrong - labels.bytes.begin()});
  }
  const std::vector<int64_t> own{images.dims[1], images.dims[2], 1};
  constexpr int64_t kMostSide = 65'535;
  if (own[0] < 1 || own[0] > kMostSide || own[1] < 1 || own[1] > kMostSide) {
    throw DataError(
        "datasets.idx",
        fmt::format(
            "expected images of 1 to {} pixels a side, got {} x {}", kMostSide, own[0], own[1]),
        {files.images});
  }
  if (!shape.empty() && own != shape) {
    throw DataError("datasets.idx",
                    fmt::format("expected {} x {} pixels as in the other split, got {} x {}",
                                shape[0],
                                shape[1],
                                own[0],
                                own[1]),
                    {files.images});
  }
  shape = own;
  return {.split = files.split,
          .pixels = std::move(images.bytes),
          .count = images.dims[0],
          .labels = {labels.bytes.begin(), labels.bytes.end()}};
}

/// A split's file, plain or gzip, with the name as published or as some archives unpack it (a dot
/// before idx).
std::vector<std::string> names_of(const std::string& stem, const char* kind) {
  std::vector<std::string> names;
  for (const char* separator : {"-", "."}) {
    for (const char* ending : {".gz", ""}) {
      names.push_back(fmt::format("{}{}{}{}", stem, separator, kind, ending));
    }
  }
  return names;
}

/// `below`: torchvision's folder, under its root.
std::shared_ptr<const Source> open_idx(const Row& set,
                                       const std::vector<std::string>& classes,
                                       const char* below,
                                       const std::string& path) {
  const std::filesystem::path torchvisions = std::filesystem::path(path) / below;
  std::error_code error;
  const std::string place =
      std::filesystem::is_directory(torchvisions, error) ? torchvisions.string() : path;
  std::vector<int64_t> shape;
  std::vector<PixelBlock> blocks;
  for (const auto& [split, stem] : {std::pair{"train", "train"}, {"test", "t10k"}}) {
    const std::string images =
        find_file(place, names_of(stem + std::string("-images"), "idx3-ubyte"));
    if (!images.empty()) {
      const std::string labels = need_file(std::filesystem::path(images).parent_path().string(),
                                           names_of(stem + std::string("-labels"), "idx1-ubyte"));
      blocks.push_back(read_split({split, images, labels}, shape));
    }
  }
  if (blocks.empty()) {
    (void)need_file(path, {kImageFiles[0], kImageFiles[2], std::string(below)});
    throw DataError(
        "datasets.idx", "is not one of the IDX files. Give the folder that has them", {path});
  }
  return std::make_shared<const PixelSource>(
      About{.set = set.name, .path = path, .classes = classes, .shape = std::move(shape)},
      std::move(blocks));
}

PublishedFile repacked(const char* name, Published published, Published also_right) {
  PublishedFile file{.name = name, .published = std::move(published)};
  file.also_right.push_back(std::move(also_right));
  return file;
}

}  // namespace

const std::vector<std::string>& digit_names() {
  return kDigits;
}

const Row& mnist() {
  static const Row row{
      .name = "mnist",
      .title = "MNIST: 70,000 handwritten digits, 28 x 28 gray, 10 classes",
      .addresses = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                    "https://dataset.bj.bcebos.com/mnist/"},
      .files = {{"train-images-idx3-ubyte.gz", {9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"}},
                {"train-labels-idx1-ubyte.gz", {28881, "d53e105ee54ea40749a09fcbcd1e9432"}},
                {"t10k-images-idx3-ubyte.gz", {1648877, "9fb629c4189551a2d022fa330f9573f3"}},
                {"t10k-labels-idx1-ubyte.gz", {4542, "ec29112dd5afa0611ce80d1b7f02629c"}}},
      .in_folder = kImageFiles,
      .in_name = "-images-idx3",
      .mean = {0.1307},
      .std = {0.3081},
      .open = [](const OpenOptions& options) {
        return open_idx(mnist(), kDigits, "MNIST/raw", options.path);
      }};
  return row;
}

const Row& fashion_mnist() {
  // Debian's package dataset-fashion-mnist has the same data, without gzip's file name.
  static const Row row{.name = "fashion_mnist",
                       .title = "Fashion-MNIST: 70,000 clothes, 28 x 28 gray, 10 classes",
                       .addresses = {"https://dataset.bj.bcebos.com/fashion_mnist/",
                                     "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
                       .files = {repacked("train-images-idx3-ubyte.gz",
                                          {26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
                                          {26421856, "cf8536b0aa1a6ac5fa3f23001093305c"}),
                                 repacked("train-labels-idx1-ubyte.gz",
                                          {29515, "25c81989df183df01b3e8a0aad5dffbe"},
                                          {29491, "10bea18fdb374794d4bb42e356e600c9"}),
                                 repacked("t10k-images-idx3-ubyte.gz",
                                          {4422102, "bef4ecab320f06d8554ea6380940ec79"},
                                          {4422079, "f78720b4224f21cce2f2ccf2d7a94c9a"}),
                                 repacked("t10k-labels-idx1-ubyte.gz",
                                          {5148, "bb300cfdad3c16e7a12a480ee83cd310"},
                                          {5125, "0d30e22e447f3c33dab9ed536400ac01"})},
                       .in_folder = kImageFiles,
                       .mean = {0.2860},
                       .std = {0.3530},
                       .open = [](const OpenOptions& options) {
                         return open_idx(
                             fashion_mnist(), kClothes, "FashionMNIST/raw", options.path);
                       }};
  return row;
}

}  // namespace argosy::datasets
