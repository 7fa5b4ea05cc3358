#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/cifar.h"

namespace argosy::datasets {

/// A file of the data set, from a folder or an archive.
struct CifarFile {
  std::string place;   ///< for errors
  std::string name{};  ///< without folders
  std::vector<uint8_t> bytes{};
};

struct CifarFiles {
  std::vector<CifarFile> batches;  ///< batches of the part, in order
  std::vector<CifarFile> names;    ///< files with names of classes: batches.meta, meta, *.txt
};

/// Finds and reads the files of a part at `path`. Errors: as for read_cifar.
[[nodiscard]] CifarFiles read_cifar_files(const std::string& path, const CifarOptions& options);

}  // namespace argosy::datasets
