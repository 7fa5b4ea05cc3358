#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::datasets {

/// Which ids are for training. The authors of the data set train on trnid (1,020 images) and test
/// on tstid (6,149); Paddle does it the other way round, so that there is more to train on.
/// Results are comparable within one of the two only.
enum class FlowersSplits : uint8_t {
  kPublished,  ///< train = trnid, test = tstid; as torchvision
  kPaddle      ///< train = tstid, test = trnid
};

struct Flowers102Options {
  FlowersSplits splits = FlowersSplits::kPublished;
};

/// Labels and splits of Oxford Flowers-102. Ids count from 1, as the pictures' names do.
struct Flowers102Index {
  std::vector<uint8_t> labels{};  ///< of id 1, 2, …: 0 to 101, one less than in the file
  std::vector<int64_t> train{};   ///< ids, in the file's order
  std::vector<int64_t> valid{};
  std::vector<int64_t> test{};

  /// Label of picture `id`. Errors: UsageError for an id that is not there.
  [[nodiscard]] uint8_t label(int64_t id) const;
};

/// Reads imagelabels.mat and setid.mat.
///
///     Flowers102Index flowers = read_flowers102(folder + "/imagelabels.mat", folder +
///     "/setid.mat",
///                                               {.splits = FlowersSplits::kPaddle});
///
/// Errors: DataError with path and the place in the array: no such variable, a label outside 1 to
/// 102, an id that has no label, an id twice (in one split or in two); and formats::read_mat()'s.
[[nodiscard]] Flowers102Index read_flowers102(const std::string& labels_path,
                                              const std::string& splits_path,
                                              const Flowers102Options& options = {});

/// The name of a picture in 102flowers.tgz: "jpg/image_00001.jpg".
[[nodiscard]] std::string flowers102_picture(int64_t id);

}  // namespace argosy::datasets
