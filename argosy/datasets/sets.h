#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/row.h"

/// The row of each set, in the file of the set. A new set is its file and a line here and in
/// rows().
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

/// Of photographs, as torchvision's users have measured them in ImageNet.
inline const std::vector<double> kImageNetMean{0.485, 0.456, 0.406};
inline const std::vector<double> kImageNetStd{0.229, 0.224, 0.225};

/// All sets that `argosy` knows by name, in the order of its help.
/// Source: Paddle's and torchvision's data sets (names, addresses, MD5s), the sets' own pages.
[[nodiscard]] const std::vector<const Row*>& rows();

/// nullptr: there is none of that name.
[[nodiscard]] const Row* find_row(std::string_view name);

/// The same for a name that must be one.
/// Errors: UsageError with the name that was probably meant, or with all of them.
[[nodiscard]] const Row& row_of(std::string_view name);

/// That of the set which a file or folder looks like. Errors: DataError: it looks like none.
[[nodiscard]] const Row& row_of_path(const std::string& path);

/// open() of a set by its name. Errors: also those of row_of().
[[nodiscard]] std::shared_ptr<const Source> open(std::string_view name, OpenOptions options = {});

/// Picture files, and all below folders whatever folders they are in, in this order, without
/// labels. Errors: DataError: no such file or folder, no picture in it.
[[nodiscard]] std::shared_ptr<const Source> open_files(const std::vector<std::string>& paths);

/// The name of the set that a file or folder looks like; empty: of none. A folder of folders is a
/// "folder".
[[nodiscard]] std::string recognise(const std::string& path);

}  // namespace argosy::datasets
