// Street View House Numbers, format 2: cropped digits in MATLAB files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/mat.h"

namespace argosy::datasets {
namespace {

constexpr int64_t kSvhnSide = 32;
constexpr int64_t kChannels = 3;
constexpr size_t kPicture = kSvhnSide * kSvhnSide * kChannels;

const std::vector<std::string> kFiles{"train_32x32.mat", "test_32x32.mat", "extra_32x32.mat"};

constexpr std::array<int64_t, 3> kPublishedCounts{73257, 26032, 531131};

/// Each picture from columns of a channel after the other to rows of RGB, in its place.
void transpose(std::vector<uint8_t>& pixels) {
  std::array<uint8_t, kPicture> columns{};
  for (size_t at = 0; at + kPicture <= pixels.size(); at += kPicture) {
    std::copy_n(pixels.begin() + static_cast<ptrdiff_t>(at), kPicture, columns.begin());
    uint8_t* to = pixels.data() + at;
    for (size_t y = 0; y < kSvhnSide; ++y) {
      for (size_t x = 0; x < kSvhnSide; ++x) {
        for (size_t c = 0; c < kChannels; ++c) {
          *to++ = columns[(c * kSvhnSide + x) * kSvhnSide + y];
        }
      }
    }
  }
}

PixelBlock read_split(const std::string& path, const std::string& split) {
  // extra_32x32.mat unpacks to 1.6 GB.
  formats::MatFile file = formats::read_mat(path, {.most_bytes = int64_t{4} << 30});
  PixelBlock block{.split = split, .labels = file.take("y").integers()};
  formats::MatArray pictures = file.take("X");
  block.count = std::ssize(block.labels);
  auto* pixels = std::get_if<std::vector<uint8_t>>(&pictures.values);
  // MATLAB leaves out a last dimension of 1.
  std::vector<int64_t> expected{kSvhnSide, kSvhnSide, kChannels};
  if (block.count != 1) {
    expected.push_back(block.count);
  }
  if (pixels == nullptr || pictures.dims != expected) {
    throw DataError("datasets.svhn",
                    fmt::format("expected X to be bytes of {} for {} labels, got {}{}",
                                fmt::join(expected, " x "),
                                block.count,
                                fmt::join(pictures.dims, " x "),
                                pixels == nullptr ? " other numbers" : ""),
                    {path});
  }
  for (int64_t& label : block.labels) {
    if (label < 1 || label > 10) {
      throw DataError("datasets.svhn",
                      fmt::format("expected a label 1 to 10, got {}", label),
                      {path, -1, &label - block.labels.data()});
    }
    label %= 10;  // 10 is the digit 0
  }
  block.pixels = std::move(*pixels);
  transpose(block.pixels);
  return block;
}

/// A file of the published length has the published number of pictures, and is read when one of
/// them is asked for. Another one is read at once.
PixelBlock block_of(const std::string& path, size_t file) {
  const std::string split = kFiles[file].substr(0, kFiles[file].find('_'));
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error || std::cmp_not_equal(bytes, svhn().files[file].published.bytes)) {
    return read_split(path, split);
  }
  const int64_t count = kPublishedCounts.at(file);
  return {.split = split, .count = count, .read = [=] {
            PixelBlock block = read_split(path, split);
            if (block.count != count) {
              throw DataError(
                  "datasets.svhn",
                  fmt::format("expected {} labels in this file, got {}", count, block.count),
                  {path});
            }
            return block;
          }};
}

std::shared_ptr<const Source> open_svhn(const OpenOptions& options) {
  const std::string& path = options.path;
  std::vector<PixelBlock> blocks;
  std::error_code error;
  const bool alone = std::filesystem::is_regular_file(path, error);
  const std::string file_name = std::filesystem::path(path).filename().string();
  for (size_t file = 0; file < kFiles.size(); ++file) {
    const std::string found =
        alone ? (file_name == kFiles[file] ? path : "") : find_file(path, {kFiles[file]});
    if (!found.empty()) {
      blocks.push_back(block_of(found, file));
    }
  }
  if (blocks.empty()) {
    blocks.push_back(read_split(alone ? path : need_file(path, kFiles), "train"));
  }
  About about{.set = "svhn", .path = path, .shape = {kSvhnSide, kSvhnSide, kChannels}};
  for (int digit = 0; digit < 10; ++digit) {
    about.classes.push_back(std::to_string(digit));
  }
  return std::make_shared<const PixelSource>(std::move(about), std::move(blocks));
}

}  // namespace

// MD5s are those of torchvision's SVHN. Many programs that fetch the files expect the same lengths.
const Row& svhn() {
  static const Row row{.name = "svhn",
                       .title = "SVHN: 630,420 digits of house numbers, 32 x 32 RGB, 10 classes",
                       .addresses = {"http://ufldl.stanford.edu/housenumbers/"},
                       .files = {{kFiles[0], {182040794, "e26dedcc434d2e4c54c9b2d4a06d8373"}},
                                 {kFiles[1], {64275384, "eb5a983be6a315427106f1b164d9cef3"}},
                                 {kFiles[2], {1329278602, "a93ce644f1a588dc4d68dda5feec44a7"}}},
                       .in_folder = kFiles,
                       .in_name = "_32x32.mat",
                       .mean = {0.4377, 0.4438, 0.4728},
                       .std = {0.1980, 0.2010, 0.1970},
                       .open = open_svhn};
  return row;
}

}  // namespace argosy::datasets
