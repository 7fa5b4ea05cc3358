#pragma once

#include <string>

#include "argosy/datasets/keypoints.h"

// Internal to the data sets.
namespace argosy::vision {

/// Faces with points out of a record file, as datasets::read_keypoints() gives those of the CSV;
/// samples without points (the contest's test images) are left out.
/// Errors: DataError with path and index: the records' own, samples without points only, a picture
/// that is no gray square of the first one's size, another number of points than names, nothing
/// above to fill with.
[[nodiscard]] datasets::Keypoints read_packed_faces(const std::string& path,
                                                    datasets::Missing missing);

}  // namespace argosy::vision
