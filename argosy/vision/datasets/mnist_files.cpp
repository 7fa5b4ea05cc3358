#include "argosy/vision/datasets/mnist_files.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include "argosy/base/check.h"
#include "argosy/formats/idx.h"

namespace argosy::vision::detail {
namespace {

namespace fs = std::filesystem;
using formats::IdxArray;
using formats::IdxType;

constexpr int64_t kMnistFilesSide = 28;
constexpr int64_t kClasses = 10;
constexpr int64_t kDimsOffset = 4;  // an IDX header: 4 bytes of magic, then 4 for each dimension

/// The file in `folder` or in torchvision's folder below it, plain or gzip, with the name as
/// published or as some archives unpack it (a dot before idx).
std::string find_file(const std::string& folder,
                      const std::string& stem,
                      const std::string& kind,
                      const MnistFlavour& flavour) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    throw DataError(flavour.where,
                    fmt::format("no such folder: expected the four IDX files of the data set in "
                                "it. {}",
                                flavour.advice),
                    {folder});
  }
  std::vector<std::string> names;
  for (const char* separator : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      names.push_back(stem + separator + kind + suffix);
    }
  }
  for (const fs::path& place : {fs::path(folder), fs::path(folder) / flavour.subfolder}) {
    for (const std::string& name : names) {
      if (fs::exists(place / name, ignored)) {
        return (place / name).string();
      }
    }
  }
  throw DataError(flavour.where,
                  fmt::format("file missing: looked for {}, there and in {}/. {}",
                              fmt::join(names, ", "),
                              flavour.subfolder,
                              flavour.advice),
                  {folder});
}

IdxArray read_array(const std::string& path,
                    const std::vector<int64_t>& expected_tail,
                    std::string_view what,
                    const MnistFlavour& flavour) {
  IdxArray array = formats::read_idx(path);
  const bool fits = array.dims.size() == expected_tail.size() + 1 &&
                    std::equal(expected_tail.begin(), expected_tail.end(), array.dims.begin() + 1);
  if (array.type != IdxType::kU8 || !fits) {
    throw DataError(flavour.where,
                    fmt::format("not a file of {}: expected bytes (type 0x08) with dimensions N{}, "
                                "got type {:#04x} with {}",
                                what,
                                expected_tail.empty() ? "" : " x 28 x 28",
                                static_cast<int>(array.type),
                                fmt::join(array.dims, " x ")),
                    {path, array.type == IdxType::kU8 ? kDimsOffset : 0});
  }
  return array;
}

at::Tensor to_labels(const IdxArray& array, const std::string& path, const MnistFlavour& flavour) {
  const int64_t n = array.dims[0];
  at::Tensor labels = at::empty({n}, at::kLong);
  auto* out = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    out[i] = array.bytes[static_cast<size_t>(i)];
    if (out[i] >= kClasses) {
      throw DataError(flavour.where,
                      fmt::format("label {} is too large: expected 0 to {}", out[i], kClasses - 1),
                      {path, kDimsOffset + 4 + i, i});
    }
  }
  return labels;
}

/// The array's own memory as a tensor.
at::Tensor to_images(IdxArray array) {
  auto owner = std::make_shared<std::vector<uint8_t>>(std::move(array.bytes));
  return at::from_blob(
      owner->data(), array.dims, [owner](void*) {}, at::TensorOptions(at::kByte));
}

}  // namespace

MnistArrays read_mnist(const std::string& folder, Split split, const MnistFlavour& flavour) {
  ARGOSY_CHECK(split != Split::kValid,
               flavour.where,
               "the data set has no validation split, only train and test. Divide the training "
               "images with data::random_split");
  const std::string stem = split == Split::kTrain ? "train" : "t10k";
  const std::string images_path = find_file(folder, stem + "-images", "idx3-ubyte", flavour);
  const std::string labels_path = find_file(folder, stem + "-labels", "idx1-ubyte", flavour);
  IdxArray images = read_array(images_path, {kMnistFilesSide, kMnistFilesSide}, "images", flavour);
  const IdxArray labels = read_array(labels_path, {}, "labels", flavour);
  if (labels.dims[0] != images.dims[0]) {
    throw DataError(flavour.where,
                    fmt::format("numbers of images and labels differ: expected {} labels as {} has "
                                "images, got {}",
                                images.dims[0],
                                images_path,
                                labels.dims[0]),
                    {labels_path, kDimsOffset});
  }
  return {.images = to_images(std::move(images)),
          .labels = to_labels(labels, labels_path, flavour)};
}

}  // namespace argosy::vision::detail
