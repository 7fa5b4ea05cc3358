// Pictures with what was predicted of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "argosy/image/codec.h"
#include "argosy/image/resize.h"
#include "argosy/recipes/prediction.h"

namespace argosy::recipes {
namespace {

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
