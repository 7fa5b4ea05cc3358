#include "argosy/datasets/cifar.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/cifar_batch.h"
#include "argosy/datasets/cifar_files.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/archive.h"

namespace argosy::datasets {
CifarData read_cifar(const std::string& path, const CifarOptions& options) {
  options.limits.validate();
  CifarFiles files = read_cifar_files(path, options);
  CifarData data;
  size_t bytes = 0;
  for (const CifarFile& batch : files.batches) {
    bytes += batch.bytes.size();
  }
  data.pixels.reserve(bytes);  // a little more than the pixels; untouched pages cost nothing
  for (CifarFile& batch : files.batches) {
    append_cifar_batch(batch, data);
    batch.bytes = std::vector<uint8_t>();  // as the pixels grow, the files go
  }
  set_cifar_classes(files.names, data);
  return data;
}

namespace {

/// The file has a picture's red, then its green, then its blue pixels; here they stand together.
std::vector<uint8_t> interleaved(const std::vector<uint8_t>& planes) {
  constexpr size_t kPlane = CifarData::kSide * CifarData::kSide;
  std::vector<uint8_t> pixels(planes.size());
  for (size_t image = 0; image < planes.size(); image += CifarData::kImageBytes) {
    for (size_t i = 0; i < kPlane; ++i) {
      for (size_t channel = 0; channel < CifarData::kChannels; ++channel) {
        pixels[image + i * CifarData::kChannels + channel] = planes[image + channel * kPlane + i];
      }
    }
  }
  return pixels;
}

PixelBlock block_of(const char* split, const CifarData& data) {
  PixelBlock block{.split = split,
                   .pixels = interleaved(data.pixels),
                   .count = static_cast<int64_t>(data.size())};
  for (size_t i = 0; i < data.size(); ++i) {
    block.labels.push_back(data.labels[i]);
    if (!data.coarse_labels.empty()) {
      block.labels.push_back(data.coarse_labels[i]);
    }
  }
  return block;
}

bool is_single_batch(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) &&
         formats::archive_kind(path) == formats::ArchiveKind::kNone;
}

std::shared_ptr<const Source> open_cifar(const Row& row, int classes, const std::string& path) {
  std::error_code error;
  std::string file = path;  // an archive, a batch, or a folder with the batches
  if (std::filesystem::is_directory(path, error)) {
    const std::string found = find_file(path, row.in_folder);
    file = found.empty() ? path : found;
  }
  const CifarData train = read_cifar(file, {.part = CifarPart::kTrain});
  if (train.num_classes != classes) {
    throw DataError("datasets.cifar",
                    fmt::format("is CIFAR-{}, not CIFAR-{}", train.num_classes, classes),
                    {file});
  }
  std::vector<PixelBlock> blocks;
  if (is_single_batch(file)) {  // which read_cifar() takes whole, whatever part is asked for
    blocks.push_back(block_of("batch", train));
  } else {
    blocks.push_back(block_of("train", train));
    blocks.push_back(block_of("test", read_cifar(file, {.part = CifarPart::kTest})));
  }
  return std::make_shared<const PixelSource>(
      About{.set = row.name,
            .path = file,
            .classes = train.classes,
            .groups = train.coarse_classes,
            .shape = {CifarData::kSide, CifarData::kSide, CifarData::kChannels}},
      std::move(blocks));
}

}  // namespace

const Row& cifar10() {
  static const Row row{
      .name = "cifar10",
      .title = "CIFAR-10: 60,000 photographs, 32 x 32 RGB, 10 classes",
      .addresses = {"https://www.cs.toronto.edu/~kriz/", "https://dataset.bj.bcebos.com/cifar/"},
      .files = {{"cifar-10-python.tar.gz", {170498071, "c58f30108f718f92721af3b95e74349a"}},
                {"cifar-10-binary.tar.gz", {170052171, "c32a1d4ab5d03f1284b67883e8d87530"}}},
      .one_file_is_enough = true,
      .in_folder = {"cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"},
      .in_name = "cifar-10-",
      .augment = "crop,flip",
      .mean = {0.4914, 0.4822, 0.4465},
      .std = {0.2470, 0.2435, 0.2616},
      .open = [](const OpenOptions& options) { return open_cifar(cifar10(), 10, options.path); }};
  return row;
}

const Row& cifar100() {
  static const Row row{
      .name = "cifar100",
      .title = "CIFAR-100: 60,000 photographs, 32 x 32 RGB, 100 classes",
      .addresses = {"https://www.cs.toronto.edu/~kriz/", "https://dataset.bj.bcebos.com/cifar/"},
      .files = {{"cifar-100-python.tar.gz", {169001437, "eb9058c3a382ffc7106e4002c42a8d85"}},
                {"cifar-100-binary.tar.gz", {168513733, "03b5dce01913d631647c71ecec9e9cb8"}}},
      .one_file_is_enough = true,
      .in_folder = {"cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"},
      .in_name = "cifar-100-",
      .options = {{"groups", "fine (100) or coarse (20)"}},
      .augment = "crop,flip",
      .mean = {0.5071, 0.4867, 0.4408},
      .std = {0.2675, 0.2565, 0.2761},
      .open = [](const OpenOptions& options) { return open_cifar(cifar100(), 100, options.path); }};
  return row;
}

}  // namespace argosy::datasets
