#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::datasets {

/// Labels and splits of Oxford Flowers-102. Ids count from 1, as the pictures' names do.
struct Flowers102Index {
  std::vector<uint8_t> labels{};  ///< labels of ids 1, 2, …: 0 to 101, one less than in the file
  std::vector<int64_t> train{};   ///< ids, in the file's order
  std::vector<int64_t> valid{};
  std::vector<int64_t> test{};

  /// Returns the label of picture `id`. Errors: UsageError for an id that does not exist.
  [[nodiscard]] uint8_t label(int64_t id) const;
};

/// Reads imagelabels.mat and setid.mat.
///
///     auto flowers = read_flowers102(folder + "/imagelabels.mat", folder + "/setid.mat");
///
/// Errors: DataError with path and the place in the array: a variable is missing, a label is
/// outside 1 to 102, an id has no label, or an id stands twice (in one split or in two). Also the
/// errors of formats::read_mat().
[[nodiscard]] Flowers102Index read_flowers102(const std::string& labels_path,
                                              const std::string& splits_path);

/// Returns the name of a picture in 102flowers.tgz: "jpg/image_00001.jpg".
[[nodiscard]] std::string flowers102_picture(int64_t id);

}  // namespace argosy::datasets
