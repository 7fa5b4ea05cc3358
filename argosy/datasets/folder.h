#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

struct FolderOptions {
  /// Endings of the file names that count, in any case. The default is torchvision's and Paddle's.
  std::vector<std::string> extensions{
      ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};
  Absent absent = Absent::kError;  ///< class folders without any image
};

struct FolderSample {
  std::string path{};
  int64_t label = 0;  ///< index into ClassFolder::classes
};

/// The content of a folder of class folders.
struct ClassFolder {
  std::vector<std::string> classes{};  ///< names of the folders, sorted
  std::vector<FolderSample> samples{};
};

/// Lists `root`/CLASS/**/FILE for each folder CLASS, as DatasetFolder does.
///
///     ClassFolder pets = scan_class_folder("pets");  // pets.samples[0]: {"pets/cat/1.jpg", 0}
///
/// The order is torchvision's: by class, then by folder path, then by file name, all bytewise.
/// Links to files and folders are followed.
/// Errors: DataError with the path: the folder does not exist or is not readable, there is no class
/// folder, a class has no images (it names all such classes), a link leads nowhere or back to a
/// folder that contains it, or more than 1000 links lead to a folder.
[[nodiscard]] ClassFolder scan_class_folder(const std::string& root,
                                            const FolderOptions& options = {});

/// Lists `root`/**/FILE, as Paddle's ImageFolder does, without classes. Order and errors are the
/// same; a folder without any image is also an error.
[[nodiscard]] std::vector<std::string> scan_image_folder(const std::string& root,
                                                         const FolderOptions& options = {});

}  // namespace argosy::datasets
