#include "argosy/datasets/keypoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/grays.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/csv.h"
#include "argosy/os/whole_file.h"

namespace argosy::datasets {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Where things stand in training.csv.
struct Columns {
  size_t image = 0;
  std::vector<std::string> names{};
  std::vector<size_t> coordinates{};  // 2 for each name: x, y
};

[[noreturn]] void fail_keypoints(const std::string& path, const std::string& what) {
  throw DataError("datasets.keypoints", what, {path});
}

size_t need_column(const formats::CsvReader& table,
                   const std::string& path,
                   std::string_view name) {
  const std::optional<size_t> at = table.column(name);
  if (!at) {
    fail_keypoints(path, fmt::format("the column \"{}\" is missing", name));
  }
  return *at;
}

Columns find_columns(const formats::CsvReader& table, const std::string& path) {
  Columns columns{.image = need_column(table, path, "Image")};
  for (size_t i = 0; i < table.header().size(); ++i) {
    const std::string& column = table.header()[i];
    if (column.ends_with("_x")) {
      const std::string name = column.substr(0, column.size() - 2);
      columns.names.push_back(name);
      columns.coordinates.push_back(i);
      columns.coordinates.push_back(need_column(table, path, name + "_y"));
    }
  }
  if (columns.names.empty()) {
    fail_keypoints(
        path, "no points: expected columns NAME_x and NAME_y. (test.csv is read by read_faces.)");
  }
  if (columns.coordinates.size() + 1 != table.header().size()) {
    fail_keypoints(
        path,
        fmt::format("expected the columns Image and pairs of NAME_x and NAME_y, got {} columns "
                    "of which {} are that",
                    table.header().size(),
                    columns.coordinates.size() + 1));
  }
  return columns;
}

/// NaN where the field is missing.
float coordinate(const formats::CsvReader& table, size_t column) {
  const std::string_view text = table.fields()[column];
  if (text.empty() || (text.size() == 3 && strings::to_lower(text) == "nan")) {
    return kNaN;
  }
  const std::optional<double> value = strings::parse_double(text);
  const auto narrow = static_cast<float>(value.value_or(kNaN));
  if (!std::isfinite(narrow)) {
    throw table.error(
        column, fmt::format("expected a coordinate or nothing, got \"{}\"", text.substr(0, 40)));
  }
  return narrow;
}

/// Appends the image in `column`; the first one decides on the side.
void append_image(const formats::CsvReader& table,
                  size_t column,
                  int64_t& side,
                  std::vector<uint8_t>& pixels) {
  const std::string_view text = table.fields()[column];
  if (side == 0) {
    const size_t n = count_grays(text);
    side = std::lround(std::sqrt(static_cast<double>(n)));
    if (n == 0 || static_cast<size_t>(side * side) != n) {
      side = 0;
      throw table.error(column, fmt::format("expected the gray values of a square, got {}", n));
    }
  }
  const size_t have = pixels.size();
  const auto area = static_cast<size_t>(side * side);
  if (pixels.capacity() < have + area) {
    // As many of the rows to come have a face as of those so far.
    const auto so_far = static_cast<double>(have + area);
    const double all =
        so_far * static_cast<double>(table.expected_rows()) / static_cast<double>(table.row() + 1);
    pixels.reserve(std::max(static_cast<size_t>(all), 2 * have));
  }
  pixels.resize(have + area);
  if (const auto problem = grays_of(text, std::span(pixels).subspan(have))) {
    throw table.error(column, *problem);
  }
}

/// Reads the row's coordinates; false where one is missing and the row is to be left out.
bool append_points(const formats::CsvReader& table,
                   const Columns& columns,
                   Points unknown,
                   std::vector<float>& points) {
  const size_t have = points.size();
  for (const size_t column : columns.coordinates) {
    float value = coordinate(table, column);
    if (std::isnan(value) && unknown == Points::kDrop) {
      points.resize(have);
      return false;
    }
    if (std::isnan(value) && unknown == Points::kForwardFill) {
      if (have == 0) {
        throw table.error(column,
                          "missing in the first row, which leaves nothing to fill it with. Use "
                          "Points::kDrop or kKeep");
      }
      value = points[points.size() - columns.coordinates.size()];
    }
    points.push_back(value);
  }
  return true;
}

int64_t integer(const formats::CsvReader& table, size_t column) {
  const std::optional<int64_t> value = strings::parse_int(table.fields()[column]);
  if (!value) {
    throw table.error(
        column,
        fmt::format("expected a whole number, got \"{}\"", table.fields()[column].substr(0, 40)));
  }
  return *value;
}

}  // namespace

Keypoints read_keypoints(const std::string& path, const KeypointsOptions& options) {
  formats::CsvReader table(path, {.most_bytes = options.most_bytes});
  Columns columns = find_columns(table, path);
  Keypoints faces;
  while (table.next()) {
    if (append_points(table, columns, options.points, faces.points)) {
      append_image(table, columns.image, faces.side, faces.pixels);
      faces.rows.push_back(table.row());
    }
  }
  if (faces.rows.empty()) {
    fail_keypoints(path,
                   table.row() < 0
                       ? "the table is empty"
                       : fmt::format("none of the {} rows has all its points", table.row() + 1));
  }
  faces.names = std::move(columns.names);
  return faces;
}

Faces read_faces(const std::string& path, int64_t most_bytes) {
  formats::CsvReader table(path, {.most_bytes = most_bytes});
  const size_t id = need_column(table, path, "ImageId");
  const size_t image = need_column(table, path, "Image");
  Faces faces;
  while (table.next()) {
    faces.image_ids.push_back(integer(table, id));
    append_image(table, image, faces.side, faces.pixels);
  }
  if (faces.image_ids.empty()) {
    fail_keypoints(path, "the table is empty");
  }
  return faces;
}

std::vector<KeypointQuery> read_id_lookup(const std::string& path) {
  formats::CsvReader table(path);
  const size_t row_id = need_column(table, path, "RowId");
  const size_t image_id = need_column(table, path, "ImageId");
  const size_t feature = need_column(table, path, "FeatureName");
  std::vector<KeypointQuery> queries;
  while (table.next()) {
    queries.push_back(
        {integer(table, row_id), integer(table, image_id), std::string(table.fields()[feature])});
  }
  return queries;
}

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

namespace {

/// Errors: DataError unless it is a face like those before it.
void check_face(const Sample& sample, const Keypoints& faces, const DataPlace& place) {
  const StoredPicture& picture = sample.picture;
  const int64_t side = faces.size() == 0 ? picture.size.height : faces.side;
  if (picture.kind != StoredPicture::Kind::kPixels || picture.channels != 1 ||
      picture.size.height != side || picture.size.width != side) {
    throw DataError(
        "datasets.keypoints", "expected gray squares of one size, stored as pixels", place);
  }
  if (sample.points.size() != 2 * faces.names.size()) {
    throw DataError(
        "datasets.keypoints",
        fmt::format(
            "expected {} points, got {} coordinates", faces.names.size(), sample.points.size()),
        place);
  }
}

/// Puts the last known coordinates into the gaps of `points`, and keeps them for the next.
void fill_forward(std::span<float> points, std::vector<float>& last, const DataPlace& place) {
  last.resize(points.size(), NAN);
  for (size_t i = 0; i < points.size(); ++i) {
    points[i] = std::isfinite(points[i]) ? points[i] : last[i];
    if (!std::isfinite(points[i])) {
      throw DataError(
          "datasets.keypoints", "a coordinate is missing, and none above it is known", place);
    }
  }
  last.assign(points.begin(), points.end());
}

Keypoints read_packed_faces(const std::string& path, Points unknown) {
  const auto source = open(records(), {.path = path});
  Keypoints faces{.names = source->about().point_names};
  Scratch scratch;
  std::vector<float> last;
  for (int64_t i = 0; i < source->size(); ++i) {
    const Sample sample = source->get(i, scratch);
    const DataPlace place{.path = path, .index = i};
    if (sample.points.empty()) {
      continue;
    }
    check_face(sample, faces, place);
    faces.side = sample.picture.size.height;
    const bool known = std::ranges::all_of(sample.points, [](float x) { return std::isfinite(x); });
    if (!known && unknown == Points::kDrop) {
      continue;
    }
    const size_t have = faces.points.size();
    faces.points.insert(faces.points.end(), sample.points.begin(), sample.points.end());
    if (unknown == Points::kForwardFill) {
      fill_forward(std::span(faces.points).subspan(have), last, place);
    }
    const auto pixels = sample.picture.bytes;
    faces.pixels.insert(faces.pixels.end(), pixels.begin(), pixels.end());
    faces.rows.push_back(i);
  }
  if (faces.size() == 0) {
    throw DataError("datasets.keypoints", "no face with points in it", {path});
  }
  return faces;
}

std::shared_ptr<const Source> open_keypoints(const OpenOptions& options) {
  const std::string& path = options.path;
  const Points points = options.points.value_or(Points::kKeep);
  Keypoints faces =
      recognise(path) == "records"
          ? read_packed_faces(path, points)
          : read_keypoints(file_or_in_folder(path, keypoints().in_folder), {.points = points});
  const int64_t side = faces.side;
  std::vector<PixelBlock> blocks;
  blocks.push_back({.split = "train",
                    .pixels = std::move(faces.pixels),
                    .count = faces.size(),
                    .points = std::move(faces.points)});
  std::error_code error;  // beside a file that was named, nothing else is meant
  const std::string test = std::filesystem::is_directory(path, error)
                               ? find_file(path, {"test.csv.gz", "test.csv"})
                               : std::string();
  if (!test.empty() && points == Points::kKeep) {
    Faces unlabelled = read_faces(test);
    if (unlabelled.side != side) {
      throw DataError(
          "datasets.keypoints", "its images are of another size than those of " + path, {test});
    }
    blocks.push_back({.split = "test",
                      .pixels = std::move(unlabelled.pixels),
                      .count = static_cast<int64_t>(unlabelled.image_ids.size())});
  }
  return std::make_shared<const PixelSource>(About{.set = "keypoints",
                                                   .task = Task::kPoints,
                                                   .path = path,
                                                   .point_names = std::move(faces.names),
                                                   .shape = {side, side, 1}},
                                             std::move(blocks));
}

}  // namespace

const Row& keypoints() {
  static const Row row{
      .name = "keypoints",
      .title = "Facial keypoints (Kaggle): 7,049 faces, 96 x 96 gray, 15 points",
      .task = Task::kPoints,
      .instead =
          "Kaggle gives it only to those who are logged in: download training.zip and "
          "test.zip from https://www.kaggle.com/c/facial-keypoints-detection/data, unpack "
          "them and give the path of training.csv (or training.csv.gz)",
      .in_folder = {"training.csv.gz", "training.csv"},
      .in_name = "training.csv",
      .options = {{"points", "faces with unknown points"}},
      .mean = {0},
      .std = {1},
      .open = open_keypoints};
  return row;
}

}  // namespace argosy::datasets
