#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

struct FolderOptions {
  /// Endings of file names that count, compared without case. These are torchvision's and Paddle's.
  std::vector<std::string> extensions{
      ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
  Absent absent = Absent::kError;  ///< class folders without any image
};

struct FolderSample {
  std::string path{};
  int64_t label = 0;  ///< index into ClassFolder::classes
};

/// What a folder of class folders holds.
struct ClassFolder {
  std::vector<std::string> classes{};  ///< names of the folders, sorted
  std::vector<FolderSample> samples{};
};

/// Lists `root`/CLASS/**/FILE for each folder CLASS, as DatasetFolder has it.
///
///     ClassFolder pets = scan_class_folder("pets");  // pets.samples[0]: {"pets/cat/1.jpg", 0}
///
/// The order is torchvision's: by class, then by folder path, then by file name, all bytewise.
/// Links to files and folders are followed.
/// Errors: DataError with the path: no such folder, not readable, no class folder, a class without
/// images (names them all), a link that leads nowhere or back to a folder that it lies in, a folder
/// that more than 1000 links lead to.
[[nodiscard]] ClassFolder scan_class_folder(const std::string& root,
                                            const FolderOptions& options = {});

/// Lists `root`/**/FILE, as Paddle's ImageFolder has it: no classes, same order and errors; a
/// folder without any image is one.
[[nodiscard]] std::vector<std::string> scan_image_folder(const std::string& root,
                                                         const FolderOptions& options = {});

}  // namespace argosy::datasets
