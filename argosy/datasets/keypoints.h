#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "argosy/datasets/row.h"

namespace argosy::datasets {

struct KeypointsOptions {
  Points points = Points::kDrop;  ///< dropped faces are not read
  /// Most text, unpacked. It stops a gzip bomb. The contest's training.csv has 0.24 GB.
  int64_t most_bytes = int64_t{4} << 30;
};

/// N faces with their K points.
struct Keypoints {
  int64_t side = 0;                  ///< side of the square images, in pixels
  std::vector<uint8_t> pixels{};     ///< gray, N × side × side
  std::vector<float> points{};       ///< N × K × 2: x to the right, y down, in pixels
  std::vector<std::string> names{};  ///< K, in the columns' order: "left_eye_center"
  std::vector<int64_t> rows{};       ///< N: each face's row below the header, from 0

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(rows.size()); }
};

/// Reads training.csv of Kaggle's facial-keypoints contest, plain or gzip. It has pairs of columns
/// NAME_x and NAME_y in any number and order, and a column `Image` with the gray values of a
/// square, row by row.
///
///     Keypoints faces = read_keypoints("training.csv.gz", {.points = Points::kKeep});
///
/// An empty field, or "nan", is a missing coordinate. The image's side follows from the first row.
/// Errors: DataError with path, line, column and row: the columns are not these, a coordinate is
/// not finite, a gray value is not a number from 0 to 255, an image is not square or has another
/// size, there is no face, or there is no face above with which to fill a point. Also the errors of
/// formats::CsvReader.
/// Cost: 7,049 faces (0.22 GB of text) in about 0.25 s, from gzip in about 0.45 s.
/// Source: the contest's page "Facial Keypoints Detection", 2013.
[[nodiscard]] Keypoints read_keypoints(const std::string& path,
                                       const KeypointsOptions& options = {});

/// Faces without points.
struct Faces {
  int64_t side = 0;
  std::vector<uint8_t> pixels{};     ///< gray, N × side × side
  std::vector<int64_t> image_ids{};  ///< N
};

/// Reads the contest's test.csv with the columns ImageId and Image. Errors: as for
/// read_keypoints().
[[nodiscard]] Faces read_faces(const std::string& path, int64_t most_bytes = int64_t{4} << 30);

/// One line of IdLookupTable.csv, which asks for one coordinate.
struct KeypointQuery {
  int64_t row_id = 0;
  int64_t image_id = 0;
  std::string feature{};  ///< a column of training.csv: "left_eye_center_x"
};

/// Reads the contest's IdLookupTable.csv with the columns RowId, ImageId, FeatureName. It ignores
/// other columns. Errors: DataError with path and row.
[[nodiscard]] std::vector<KeypointQuery> read_id_lookup(const std::string& path);

/// A net's predictions for N faces.
struct KeypointPredictions {
  std::span<const int64_t> image_ids{};  ///< N, as in Faces
  std::span<const std::string> names{};  ///< K, as in Keypoints
  std::span<const float> points{};       ///< N × K × 2, in pixels
};

/// Writes a submission: RowId and Location of each query, in their order. The file appears whole or
/// not at all.
/// Errors: UsageError when sizes disagree, a query asks for an image or a feature that does not
/// exist, or the answer is not finite; DataError when the file cannot be written.
void write_submission(const std::string& path,
                      std::span<const KeypointQuery> queries,
                      const KeypointPredictions& predictions);

}  // namespace argosy::datasets
