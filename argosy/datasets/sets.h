#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/row.h"

/// The row of each set is in the set's file. A new set needs a file, and a line here and in rows().
namespace argosy::datasets {

const Row& mnist();
const Row& fashion_mnist();
const Row& mnist_json();
const Row& cifar10();
const Row& cifar100();
const Row& svhn();
const Row& flowers102();
const Row& voc2012();
const Row& keypoints();
const Row& folder();
const Row& records();

/// Mean and deviation of photographs, as measured on ImageNet and used with torchvision.
inline const std::vector<double> kImageNetMean{0.485, 0.456, 0.406};
inline const std::vector<double> kImageNetStd{0.229, 0.224, 0.225};

/// Returns all sets that `argosy` knows by name, in the order of its help.
/// Source: Paddle's and torchvision's data sets (names, addresses, MD5s), the sets' own pages.
[[nodiscard]] const std::vector<const Row*>& rows();

/// Returns the row of that name, or nullptr if there is none.
[[nodiscard]] const Row* find_row(std::string_view name);

/// Returns the row of a name that must exist.
/// Errors: UsageError with the name that was probably meant, or with all of them.
[[nodiscard]] const Row& row_of(std::string_view name);

/// Returns the row of the set that a file or folder looks like. Errors: DataError when it looks
/// like none.
[[nodiscard]] const Row& row_of_path(const std::string& path);

/// Opens a set by its name. Errors: those of open() and row_of().
[[nodiscard]] std::shared_ptr<const Source> open(std::string_view name, OpenOptions options = {});

/// Opens picture files, and all pictures below folders at any depth, in this order, without labels.
/// Errors: DataError when a file or folder does not exist, or has no picture.
[[nodiscard]] std::shared_ptr<const Source> open_files(const std::vector<std::string>& paths);

/// Returns the name of the set that a file or folder looks like. A folder of folders is a "folder".
/// Empty: it looks like none.
[[nodiscard]] std::string recognise(const std::string& path);

}  // namespace argosy::datasets
