#pragma once

#include <string>

#include "argosy/datasets/keypoints.h"

namespace argosy::datasets {

/// Faces with points, from training.csv, from the folder that has it, or from a record file that
/// `argosy data pack` wrote of them; samples without points (the contest's test images) are left
/// out.
///
///     Keypoints faces = read_faces_with_points("faces.rec", Missing::kDrop);
///
/// Errors: DataError as read_keypoints() has them; of records with path and index: the records'
/// own, samples without points only, a picture that is no gray square of the first one's size,
/// another number of points than names, nothing above to fill with.
[[nodiscard]] Keypoints read_faces_with_points(const std::string& path, Missing missing);

}  // namespace argosy::datasets
