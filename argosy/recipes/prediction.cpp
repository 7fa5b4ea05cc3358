#include "argosy/recipes/prediction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/image/codec.h"
#include "argosy/image/resize.h"
#include "argosy/os/whole_file.h"

#include <nlohmann/json.hpp>

namespace argosy::recipes {
namespace {

std::vector<Guess> guesses_of(const float* labels_row, const at::Tensor& order_row) {
  std::vector<Guess> guesses;
  for (int64_t i = 0; i < order_row.numel(); ++i) {
    const auto label = order_row[i].item<int64_t>();
    guesses.push_back({.label = label, .probability = labels_row[label]});
  }
  return guesses;
}

/// From parts of the model's picture to pixels of the stored one: all of it, or its middle, as
/// evaluation_chain() takes it.
std::vector<float> in_pixels(const at::Tensor& row, const image::Image& picture, bool all_of_it) {
  constexpr double kSeen = 224.0 / 256.0;
  const double shorter = std::min(picture.width(), picture.height());
  const double width = all_of_it ? picture.width() : shorter * kSeen;
  const double height = all_of_it ? picture.height() : shorter * kSeen;
  std::vector<float> points;
  for (int64_t i = 0; i < row.numel(); i += 2) {
    points.push_back(
        static_cast<float>((picture.width() - width) / 2 + row[i].item<double>() * width));
    points.push_back(
        static_cast<float>((picture.height() - height) / 2 + row[i + 1].item<double>() * height));
  }
  return points;
}

std::string name_of(const std::vector<std::string>& classes, int64_t label) {
  if (label < 0) {
    return {};
  }
  return label < std::ssize(classes) ? classes[static_cast<std::size_t>(label)]
                                     : std::to_string(label);
}

/// The true class, or those that are on the picture, with ";" between them.
std::string truth_of(const Prediction& each, const DataSet& data) {
  std::vector<std::string> names;
  for (const int64_t tag : each.tags) {
    names.push_back(name_of(data.classes(), tag));
  }
  return each.tags.empty() ? name_of(data.classes(), each.label)
                           : fmt::format("{}", fmt::join(names, ";"));
}

/// A field of CSV, in quotes where it needs them.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::string csv_head(const std::vector<Prediction>& predictions, const DataSet& data) {
  std::string line = "index,name";
  for (const std::string& point : data.point_names()) {
    line += fmt::format(",{0}_x,{0}_y", field(point));
  }
  if (data.point_names().empty()) {
    line += ",label,predicted,probability";
    const std::size_t most = predictions.empty() ? 1 : predictions.front().guesses.size();
    for (std::size_t k = 2; k <= most; ++k) {
      line += fmt::format(",predicted_{0},probability_{0}", k);
    }
  }
  return line + "\n";
}

std::string csv_line(const Prediction& each, const DataSet& data) {
  std::string line = fmt::format("{},{}", each.index, field(each.name));
  for (const float x : each.points) {
    line += fmt::format(",{:.3f}", x);
  }
  if (each.points.empty()) {
    line += fmt::format(",{}", field(truth_of(each, data)));
  }
  for (const Guess& guess : each.guesses) {
    line +=
        fmt::format(",{},{:.6f}", field(name_of(data.classes(), guess.label)), guess.probability);
  }
  return line + "\n";
}

std::string json_line(const Prediction& each, const DataSet& data) {
  nlohmann::ordered_json json{{"index", each.index}, {"name", each.name}};
  if (!each.points.empty()) {
    json["points"] = each.points;
    return json.dump() + "\n";
  }
  if (each.label >= 0) {
    json["label"] = each.label;
    json["class"] = name_of(data.classes(), each.label);
  }
  if (!each.tags.empty()) {
    json["labels"] = each.tags;
    json["class"] = truth_of(each, data);
  }
  auto guesses = nlohmann::ordered_json::array();
  for (const Guess& guess : each.guesses) {
    guesses.push_back({{"label", guess.label},
                       {"class", name_of(data.classes(), guess.label)},
                       {"probability", guess.probability}});
  }
  json["predicted"] = std::move(guesses);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

constexpr int kSide = 144;

std::string name_of(const DataSet& data, int64_t label) {
  const auto at = static_cast<std::size_t>(label);
  return at < data.classes().size() ? data.classes()[at] : fmt::format("{}", label);
}

/// Mean distance of the points that are known, in pixels.
double mean_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  int known = 0;
  for (std::size_t i = 0; i + 1 < std::min(a.size(), b.size()); i += 2) {
    const double distance = std::hypot(a[i] - b[i], a[i + 1] - b[i + 1]);
    sum += std::isfinite(distance) ? distance : 0;
    known += std::isfinite(distance) ? 1 : 0;
  }
  return known == 0 ? 0 : sum / known;
}

runs::PagePicture shown(const Prediction& each, const Examples& examples, const DataSet& data) {
  const image::Image picture =
      examples.dataset().picture(examples.indices()[static_cast<std::size_t>(each.index)]);
  const std::vector<uint8_t> png = image::encode_png(image::shrunk(picture, 2 * kSide));
  runs::PagePicture shown{.png = {png.begin(), png.end()},
                          .points = each.points,
                          .true_points = each.true_points,
                          .width = picture.width(),
                          .height = picture.height()};
  if (!each.points.empty()) {
    if (!each.true_points.empty()) {
      shown.caption =
          fmt::format("off by {:.1f} pixels", mean_distance(each.points, each.true_points));
    }
    return shown;
  }
  const Guess& guess = each.guesses.front();
  shown.caption = fmt::format("{} {:.0f}%", name_of(data, guess.label), 100 * guess.probability);
  for (const int64_t tag : each.tags) {
    shown.caption +=
        fmt::format("{} {}", &tag == each.tags.data() ? ", has" : ",", name_of(data, tag));
  }
  if (each.label >= 0) {
    shown.mark = each.right() ? runs::PagePicture::Mark::kRight : runs::PagePicture::Mark::kWrong;
    shown.caption += each.right() ? "" : fmt::format(", is {}", name_of(data, each.label));
  }
  return shown;
}

}  // namespace

std::vector<Prediction> predictions_of(const PictureAssembly& assembly,
                                       const Examples& examples,
                                       const at::Tensor& outputs,
                                       int64_t topk) {
  ARGOSY_INVARIANT(outputs.dim() == 2 && outputs.size(0) == examples.size(), "recipes.predict");
  const bool points = !assembly.data->point_names().empty();
  const at::Tensor values = (points                         ? outputs
                             : assembly.task == Task::kTags ? outputs.sigmoid()
                                                            : outputs.softmax(1))
                                .to(at::kCPU, at::kFloat)
                                .contiguous();
  const at::Tensor order =
      points ? at::Tensor() : values.argsort(1, true).narrow(1, 0, std::min(topk, values.size(1)));
  const vision::PictureDataset& set = examples.dataset();
  const Task known = set.source().about().task;
  std::vector<Prediction> all;
  for (int64_t i = 0; i < examples.size(); ++i) {
    const int64_t at = examples.indices()[static_cast<std::size_t>(i)];
    Prediction each{.index = i, .name = set.name(at)};
    if (known == Task::kClass) {
      each.label = set.labels()[static_cast<std::size_t>(at)];
    } else if (known == Task::kTags) {
      datasets::Scratch scratch;
      const auto tags = set.source().labels(set.sample_key(at), scratch);
      each.tags.assign(tags.begin(), tags.end());
    }
    if (points) {
      vision::StoredExample stored = set.stored(at);
      each.points = in_pixels(values[i], stored.picture, assembly.shape.stored != 0);
      each.true_points = std::move(stored.points);
    } else {
      each.guesses = guesses_of(values.data_ptr<float>() + i * values.size(1), order[i]);
    }
    all.push_back(std::move(each));
  }
  return all;
}

void write_predictions(const std::string& path,
                       const std::vector<Prediction>& predictions,
                       const DataSet& data) {
  const std::string end = std::filesystem::path(path).extension().string();
  const bool printed = path.empty() || path == "-";
  ARGOSY_CHECK(printed || end == ".csv" || end == ".jsonl",
               "recipes.predict",
               "--out {}: expected a name that ends with .csv or .jsonl",
               path);
  std::string text = end == ".jsonl" ? "" : csv_head(predictions, data);
  for (const Prediction& each : predictions) {
    text += end == ".jsonl" ? json_line(each, data) : csv_line(each, data);
  }
  if (printed) {
    fmt::print("{}", text);
    return;
  }
  os::write_whole(path, text).or_throw<DataError>("recipes.predict", DataPlace{path});
}

runs::PicturePage sheet_of(const std::vector<Prediction>& predictions,
                           const Examples& examples,
                           const DataSet& data,
                           int64_t size) {
  runs::PicturePage page{.title = "Predictions", .side = kSide};
  if (predictions.front().label >= 0) {
    const auto right = std::ranges::count_if(predictions, &Prediction::right);
    page.note = fmt::format("{} of {} right", right, predictions.size());
  }
  const auto count = std::min<int64_t>(size, std::ssize(predictions));
  for (int64_t i = 0; i < count; ++i) {
    const auto chosen = static_cast<std::size_t>(i * std::ssize(predictions) / count);
    page.pictures.push_back(shown(predictions[chosen], examples, data));
  }
  return page;
}

}  // namespace argosy::recipes
