#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "argosy/vision/datasets/picture_batches.h"
#include "argosy/vision/split.h"

// Internal to the data sets.
namespace argosy::vision {

/// The samples of a split of the source. Errors: UsageError `[where] …` when it has none of this
/// name, naming those that it has.
[[nodiscard]] PicturesOf split_of(std::shared_ptr<const datasets::Source> source,
                                  Split split,
                                  std::string_view where);

}  // namespace argosy::vision
