#include "argosy/runs/chart_data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "argosy/base/strings.h"

namespace argosy::runs {
namespace {

using nlohmann::ordered_json;

constexpr int kRates = 2;

bool contains_any(std::string_view name, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

/// "top5_accuracy" → "Top5 accuracy".
std::string title_of(std::string name) {
  std::ranges::replace(name, '_', ' ');
  if (!name.empty() && name[0] >= 'a' && name[0] <= 'z') {
    name[0] = static_cast<char>(name[0] - 'a' + 'A');
  }
  return name;
}

/// Seven digits are what a screen can show.
double rounded(double value) {
  if (value == 0) {
    return 0;
  }
  const double scale = std::pow(10, 6 - std::floor(std::log10(std::abs(value))));
  const double result = std::isfinite(scale) ? std::round(value * scale) / scale : value;
  return std::isfinite(result) ? result : value;
}

ordered_json series_json(const NamedCurve& named, const Figure& figure) {
  ordered_json points = ordered_json::array();
  const auto shown = [&](double y) { return rounded(y * figure.scale); };
  for (const CurvePiece& piece : named.curve.pieces()) {
    points.push_back({piece.last_x, shown(piece.mean())});
    if (piece.count > 1) {
      points.back().push_back(shown(piece.low.y));
      points.back().push_back(shown(piece.high.y));
    }
  }
  ordered_json series{{"points", std::move(points)}};
  if (!named.curve.empty()) {
    series["last"] = shown(latest_of(named.curve, figure));
  }
  if (named.curve.odd() > 0) {
    series["odd"] = named.curve.odd();
    series["first_odd"] = named.curve.first_odd();
  }
  return series;
}

/// Of a split in its own right: "train" and "eval" have theirs on every page. Of a server its
/// number: "server 2".
int split_color(const std::string& split) {
  constexpr std::string_view kServer = "server ";
  if (split.starts_with(kServer)) {
    return static_cast<int>(strings::parse_int(split.substr(kServer.size())).value_or(0));
  }
  constexpr std::array<std::string_view, 4> kSplits{"train", "eval", "test", "val"};
  const auto known = std::ranges::find(kSplits, split);
  return static_cast<int>(known - kSplits.begin());
}

}  // namespace

Figure figure_of(const std::string& name) {
  constexpr std::array<std::string_view, 5> kHigh{"acc", "precision", "recall", "auc", "f1"};
  constexpr std::array<std::string_view, 5> kLow{"loss", "error", "mse", "mae", "perplexity"};
  constexpr std::string_view kBytes = "_bytes";
  if (name == "loss") {
    return {.title = "Loss", .better = -1, .place = 0};
  }
  if (name == "lr" || name == "learning_rate") {
    return {.title = "Learning rate", .place = kRates};
  }
  if (name.ends_with(kBytes)) {
    return {.title = title_of(name.substr(0, name.size() - kBytes.size())) + " memory",
            .unit = "MB",
            .short_unit = "MB",
            .scale = 1e-6};
  }
  if (name == "pushes_per_second") {
    return {.title = "Pushes", .unit = "pushes/s", .short_unit = "pushes/s", .place = kRates};
  }
  if (name.ends_with("_per_second")) {
    const std::string unit = name.substr(0, name.size() - 11) + "/s";
    return {.title = "Throughput", .unit = unit, .short_unit = unit, .place = kRates + 1};
  }
  if (name == "input_wait") {
    return {.title = "Input wait",
            .unit = "% of the time",
            .short_unit = "%",
            .scale = 100,
            .place = kRates + 2};
  }
  if (name == "seconds") {
    return {.title = "Time", .unit = "s", .short_unit = "s", .place = kRates + 2};
  }
  const int better = contains_any(name, kHigh) ? 1 : contains_any(name, kLow) ? -1 : 0;
  return {.title = title_of(name), .better = better};
}

double latest_of(const BoundedCurve& curve, const Figure& figure) {
  return figure.unit.empty() ? curve.last().y : curve.pieces().back().mean();
}

std::vector<std::string> chart_names(std::span<const ChartRun> runs) {
  std::vector<std::string> names;
  for (const ChartRun& run : runs) {
    for (const NamedCurve& named : run.log->curves()) {
      if (std::ranges::find(names, named.name) == names.end()) {
        names.push_back(named.name);
      }
    }
  }
  std::ranges::stable_sort(
      names, {}, [](const std::string& name) { return figure_of(name).place; });
  return names;
}

ordered_json charts_json(std::span<const ChartRun> runs) {
  ordered_json charts = ordered_json::array();
  for (const std::string& name : chart_names(runs)) {
    const Figure figure = figure_of(name);
    ordered_json all = ordered_json::array();
    const char* axis = "step";
    bool trained = false;
    for (size_t i = 0; i < runs.size(); ++i) {
      axis = runs[i].log->axis();
      for (const NamedCurve& named : runs[i].log->curves()) {
        if (named.name != name) {
          continue;
        }
        ordered_json series = series_json(named, figure);
        const bool one = runs.size() == 1;
        series["name"] = one ? named.split : runs[i].label + " · " + named.split;
        series["color"] = one ? split_color(named.split) : static_cast<int>(i);
        series["dashed"] = !one && named.split != "train";
        trained = trained || named.split == "train";
        all.push_back(std::move(series));
      }
    }
    for (ordered_json& series : all) {  // dashes tell evaluation from training, where both are
      series["dashed"] = trained && series["dashed"].get<bool>();
    }
    charts.push_back({{"title", figure.title},
                      {"unit", figure.unit},
                      {"short_unit", figure.short_unit},
                      {"x", axis},
                      {"series", std::move(all)}});
  }
  return charts;
}

}  // namespace argosy::runs
