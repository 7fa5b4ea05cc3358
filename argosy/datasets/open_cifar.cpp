#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/cifar.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sources.h"
#include "argosy/formats/archive.h"

namespace argosy::datasets {
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

}  // namespace

std::unique_ptr<SampleSource> open_cifar(const std::string& set, const std::string& path) {
  std::error_code error;
  std::string file = path;  // an archive, a batch, or a folder with the batches
  if (std::filesystem::is_directory(path, error)) {
    const std::string found =
        set == "cifar10" ? find_file(path, {"cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"})
                         : find_file(path, {"cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"});
    file = found.empty() ? path : found;
  }
  const CifarData train = read_cifar(file, {.part = CifarPart::kTrain});
  const int expected = set == "cifar10" ? 10 : 100;
  if (train.num_classes != expected) {
    throw DataError("datasets.cifar",
                    fmt::format("is CIFAR-{}, not CIFAR-{}", train.num_classes, expected),
                    {file});
  }
  std::vector<PixelBlock> blocks;
  if (is_single_batch(file)) {  // which read_cifar() takes whole, whatever part is asked for
    blocks.push_back(block_of("batch", train));
  } else {
    blocks.push_back(block_of("train", train));
    blocks.push_back(block_of("test", read_cifar(file, {.part = CifarPart::kTest})));
  }
  constexpr auto kSide = static_cast<int64_t>(CifarData::kSide);
  return std::make_unique<PixelSource>(
      Description{
          .set = set, .path = file, .classes = train.classes, .groups = train.coarse_classes},
      Shape{.height = kSide, .width = kSide, .channels = CifarData::kChannels},
      std::move(blocks));
}

}  // namespace argosy::datasets
