#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/datasets/cifar.h"
#include "argosy/datasets/cifar_files.h"

namespace argosy::datasets {

/// Adds the samples of a batch of either form to `data`. The first batch settles which data set it
/// is.
void append_cifar_batch(const CifarFile& file, CifarData& data);

/// Sets the class names to those in `files`, or to the published ones if there are none.
void set_cifar_classes(const std::vector<CifarFile>& files, CifarData& data);

/// Returns the published names: "airplane" …, "apple" …, "aquatic_mammals" …
[[nodiscard]] std::vector<std::string> cifar_classes(int num_classes);
[[nodiscard]] std::vector<std::string> cifar_coarse_classes();

}  // namespace argosy::datasets
