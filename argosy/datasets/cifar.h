#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/formats/archive.h"

namespace argosy::datasets {

enum class CifarPart : uint8_t { kTrain, kTest };

struct CifarOptions {
  CifarPart part = CifarPart::kTrain;
  /// member_bytes and total_bytes also limit the files of a folder; the largest published one has
  /// 155 MB.
  formats::ArchiveLimits limits{.member_bytes = int64_t{512} << 20};
};

/// A part of CIFAR-10 or CIFAR-100, as stored.
struct CifarData {
  static constexpr size_t kChannels = 3;  ///< red, green, blue
  static constexpr size_t kSide = 32;
  static constexpr size_t kImageBytes = kChannels * kSide * kSide;

  int num_classes = 10;                  ///< 10 or 100
  std::vector<uint8_t> pixels{};         ///< [N, 3, 32, 32]
  std::vector<uint8_t> labels{};         ///< [N], 0 to num_classes - 1
  std::vector<uint8_t> coarse_labels{};  ///< [N], 0 to 19; CIFAR-10 has none
  std::vector<std::string> classes{};    ///< names of the labels
  std::vector<std::string> coarse_classes{};

  [[nodiscard]] size_t size() const { return labels.size(); }
};

/// Reads CIFAR-10 or CIFAR-100, in its binary or its Python form.
///
///     CifarData train = read_cifar("cifar-10-python.tar.gz");
///     CifarData test = read_cifar("cifar-100-binary", {.part = CifarPart::kTest});
///
/// `path` is an archive (tar, tar.gz, zip), a folder with the batches, a folder with one folder
/// that has them, or a single batch, which is read whole whatever part is asked for. The content
/// tells which of these it is, its form and its data set. Part and order come from the batches'
/// names (data_batch_1 to 5 and test_batch, train and test; binary ones end in .bin). Batches may
/// have any length. Class names come from the files beside the batches, else the published ones are
/// used. Errors: DataError with path (and member), and the sample's index or the offset: there are
/// no batches, one is missing or there twice, one is truncated, counts differ, or a label is out of
/// range. Also the errors of formats::ArchiveReader and formats::unpickle(). Source: A. Krizhevsky,
/// Learning Multiple Layers of Features from Tiny Images, 2009, and the data sets' page.
[[nodiscard]] CifarData read_cifar(const std::string& path, const CifarOptions& options = {});

}  // namespace argosy::datasets
