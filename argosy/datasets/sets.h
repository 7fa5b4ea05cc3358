#pragma once

#include <vector>

#include "argosy/datasets/row.h"

/// The row of each set, in the file of the set. A new set is its file and a line here and in
/// rows().
namespace argosy::datasets {

/// Of photographs, as torchvision's users have measured them in ImageNet.
inline const std::vector<double> kImageNetMean{0.485, 0.456, 0.406};
inline const std::vector<double> kImageNetStd{0.229, 0.224, 0.225};

const Row& mnist();
const Row& fashion_mnist();
const Row& mnist_json();
const Row& cifar10();
const Row& cifar100();
const Row& flowers102();
const Row& keypoints();
const Row& folder();
const Row& records();

}  // namespace argosy::datasets
