#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/cifar.h"

namespace argosy::datasets {

/// A file of the data set, wherever it lay.
struct CifarFile {
  std::string place;   ///< for errors
  std::string name{};  ///< without folders
  std::vector<uint8_t> bytes{};
};

struct CifarFiles {
  std::vector<CifarFile> batches;  ///< of the part, in order
  std::vector<CifarFile> names;    ///< of the classes: batches.meta, meta, *.txt
};

/// Finds and reads what `path` holds of a part. Errors: as read_cifar.
[[nodiscard]] CifarFiles read_cifar_files(const std::string& path, const CifarOptions& options);

}  // namespace argosy::datasets
