// Pictures with what was predicted of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "argosy/datasets/canvas.h"
#include "argosy/datasets/contact_sheet.h"
#include "argosy/recipes/prediction.h"

namespace argosy::recipes {
namespace {

using datasets::Colour;

constexpr Colour kRight{.red = 40, .green = 160, .blue = 70};
constexpr Colour kWrong{.red = 220, .green = 50, .blue = 40};
constexpr Colour kUnknown{.red = 60, .green = 110, .blue = 200};
constexpr Colour kTrue{.red = 0, .green = 190, .blue = 255};

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

datasets::Tile tile_of(const Prediction& each, const Examples& examples, const DataSet& data) {
  datasets::Tile tile{.picture = examples.picture(each.index)};
  if (!each.points.empty()) {
    if (!each.true_points.empty()) {
      tile.caption =
          fmt::format("off by {:.1f} pixels", mean_distance(each.points, each.true_points));
      tile.dots.push_back({.points = each.true_points, .colour = kTrue});
    }
    tile.dots.push_back({.points = each.points, .colour = kWrong});
    return tile;
  }
  const Guess& guess = each.guesses.front();
  tile.caption = fmt::format("{} {:.0f}%", name_of(data, guess.label), 100 * guess.probability);
  tile.mark = kUnknown;
  if (each.label >= 0) {
    tile.mark = each.right() ? kRight : kWrong;
    tile.caption += each.right() ? "" : fmt::format(", is {}", name_of(data, each.label));
  }
  return tile;
}

image::Image legend_of(const std::vector<Prediction>& predictions) {
  constexpr Colour kWhite{.red = 255, .green = 255, .blue = 255};
  datasets::Canvas legend({.height = 18, .width = 480}, kWhite);
  if (!predictions.front().points.empty()) {
    legend.text({.top = 0, .left = 0}, "true", kTrue, 2);
    legend.text({.top = 0, .left = 60}, "predicted", kWrong, 2);
  } else if (predictions.front().label >= 0) {
    const auto right = std::ranges::count_if(predictions, &Prediction::right);
    legend.text(
        {.top = 0, .left = 0}, fmt::format("{} of {} right", right, predictions.size()), kRight, 2);
    legend.text({.top = 0, .left = 300}, "wrong: red", kWrong, 2);
  }
  return legend.picture();
}

}  // namespace

image::Image sheet_of(const std::vector<Prediction>& predictions,
                      const Examples& examples,
                      const DataSet& data,
                      int64_t size) {
  const auto count = std::min<int64_t>(size, std::ssize(predictions));
  std::vector<datasets::Tile> tiles;
  for (int64_t i = 0; i < count; ++i) {
    const auto chosen = static_cast<std::size_t>(i * std::ssize(predictions) / count);
    tiles.push_back(tile_of(predictions[chosen], examples, data));
  }
  const int columns = count < 8 ? static_cast<int>(count) : 8;
  return datasets::stacked(
      {legend_of(predictions), datasets::contact_sheet(tiles, {.columns = columns, .side = 144})});
}

}  // namespace argosy::recipes
