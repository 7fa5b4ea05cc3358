#include "apps/runs/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "argosy/base/terminal.h"
#include "argosy/base/text.h"
#include "argosy/runs/chart_data.h"
#include "argosy/runs/html.h"

namespace argosy::runs {

using nlohmann::ordered_json;

ReadRun read_whole(Run run) {
  MetricsLog log(run.folder + "/metrics.jsonl");
  log.read();
  return {.run = std::move(run), .log = std::move(log)};
}

ordered_json figures_json(const MetricsLog& log) {
  ordered_json figures = ordered_json::object();
  for (const NamedCurve& named : log.curves()) {
    const BoundedCurve& curve = named.curve;
    ordered_json figure{{"last", nullptr}};
    if (!curve.empty()) {
      figure = {{"last", curve.last().y},
                {log.axis(), curve.last().x},
                {"lowest", curve.lowest().y},
                {"highest", curve.highest().y}};
    }
    if (curve.odd() > 0) {
      figure["not_finite"] = curve.odd();
    }
    figures[named.split][named.name] = std::move(figure);
  }
  return figures;
}

std::string figure_label(const NamedCurve& named) {
  const Figure figure = figure_of(named.name);
  return text::printable(fmt::format("{} ({}){}",
                                     figure.title,
                                     named.split,
                                     figure.short_unit.empty() ? "" : ", " + figure.short_unit));
}

std::string best_of(const NamedCurve& named) {
  const Figure figure = figure_of(named.name);
  if (figure.better == 0 || named.curve.empty()) {
    return "";
  }
  const CurvePoint best = figure.better > 0 ? named.curve.highest() : named.curve.lowest();
  return shown_number(best.y * figure.scale);
}

std::string sparkline(const BoundedCurve& curve, size_t columns, SparkStyle style) {
  constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<const char*, 5> kPlain{"_", ".", "-", "'", "\""};
  const std::vector<CurvePiece>& pieces = curve.pieces();
  if (pieces.empty()) {
    return "";
  }
  std::vector<double> means;
  const size_t cells = std::min(columns, pieces.size());
  for (size_t c = 0; c < cells; ++c) {
    const size_t begin = c * pieces.size() / cells;
    const size_t end = (c + 1) * pieces.size() / cells;
    double sum = 0;
    double count = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += pieces[i].sum;
      count += static_cast<double>(pieces[i].count);
    }
    means.push_back(sum / count);
  }
  const auto [low, high] = std::ranges::minmax(means);
  const size_t levels = style == SparkStyle::kBlocks ? kBlocks.size() : kPlain.size();
  std::string text;
  for (const double mean : means) {
    const double share = high > low ? (mean - low) / (high - low) : 0;
    const auto level = static_cast<size_t>(std::lround(share * static_cast<double>(levels - 1)));
    text += style == SparkStyle::kBlocks ? kBlocks.at(level) : kPlain.at(level);
  }
  return text;
}

SparkStyle spark_style_of(int fd) {
  return terminal::shows_blocks(fd) ? SparkStyle::kBlocks : SparkStyle::kPlain;
}

}  // namespace argosy::runs
