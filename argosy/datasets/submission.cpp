#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "argosy/base/check.h"
#include "argosy/datasets/keypoints.h"
#include "argosy/os/whole_file.h"

namespace argosy::datasets {
namespace {}  // namespace

void write_submission(const std::string& path,
                      std::span<const KeypointQuery> queries,
                      const KeypointPredictions& predictions) {
  const size_t width = 2 * predictions.names.size();
  ARGOSY_CHECK(predictions.points.size() == predictions.image_ids.size() * width,
               "datasets.write_submission",
               "expected {} images x {} names x 2 coordinates, got {} numbers",
               predictions.image_ids.size(),
               predictions.names.size(),
               predictions.points.size());
  std::unordered_map<int64_t, size_t> image_at;
  for (size_t i = 0; i < predictions.image_ids.size(); ++i) {
    image_at.emplace(predictions.image_ids[i], i);
  }
  std::unordered_map<std::string, size_t> feature_at;
  for (size_t k = 0; k < predictions.names.size(); ++k) {
    feature_at.emplace(predictions.names[k] + "_x", 2 * k);
    feature_at.emplace(predictions.names[k] + "_y", 2 * k + 1);
  }
  fmt::memory_buffer text;
  fmt::format_to(std::back_inserter(text), "RowId,Location\n");
  for (const KeypointQuery& query : queries) {
    const auto image = image_at.find(query.image_id);
    const auto feature = feature_at.find(query.feature);
    ARGOSY_CHECK(image != image_at.end() && feature != feature_at.end(),
                 "datasets.write_submission",
                 "row {} asks for {} of image {}, which the predictions do not have",
                 query.row_id,
                 query.feature,
                 query.image_id);
    const float location = predictions.points[image->second * width + feature->second];
    ARGOSY_CHECK(std::isfinite(location),
                 "datasets.write_submission",
                 "the prediction of {} in image {} is {}",
                 query.feature,
                 query.image_id,
                 location);
    fmt::format_to(std::back_inserter(text), "{},{}\n", query.row_id, location);
  }
  os::write_whole(path, {text.data(), text.size()})
      .or_throw<DataError>("datasets.write_submission", DataPlace{path});
}

}  // namespace argosy::datasets
